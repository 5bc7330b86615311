"""The warning about a proxy that no setting names.

Standard library only: `slicewise doctor` works before anything is installed.
"""

from __future__ import annotations


def warning_of_unnamed_proxies(*, is_behind_tls: bool, names_proxies: bool) -> str:
    """Return a warning if the settings say that a proxy is in front, and name none; else empty."""
    if not is_behind_tls or names_proxies:
        return ""
    return (
        "BEHIND_TLS says that a proxy is in front, and TRUSTED_PROXIES names none: all clients have"
        " the proxy's address, so that wrong passwords of one client lock a name for all. Set"
        " TRUSTED_PROXIES to the proxy's network."
    )
