"""The health of a stack's web server, as a probe sees it."""

import urllib.request


def is_healthy(url: str, *, seconds: float) -> bool:
    """Return whether the web server answers its probe with status 200 within the seconds."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/health/", timeout=seconds) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
