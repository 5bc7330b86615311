"""Middleware against large bodies, foreign hosts, and rights in browsers that no page needs."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

from slicewise_server.web import error_pages

_Answer = Callable[[HttpRequest], HttpResponse]
_UNUSED_FEATURES = (
    "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture",
    "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment",
    "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip
_MOST_DIGITS = 18
_PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _UNUSED_FEATURES)


class PermissionsPolicyMiddleware:
    """Middleware by which browsers deny camera, location and the like to any content of a page."""

    def __init__(self, get_response: _Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", _PERMISSIONS_POLICY)
        return response


class BoundedBodyMiddleware:
    """Middleware that answers 413 to a body beyond ``DATA_UPLOAD_MAX_MEMORY_SIZE`` before reading.

    Django limits forms alone, and of a form only the data kept in memory. For a body without a
    length, `slicewise_server.serving` reads the body and supplies the length.
    """

    def __init__(self, get_response: _Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_beyond_limit(request.META.get("CONTENT_LENGTH") or "0"):
            return error_pages.too_large(request)
        return self.get_response(request)


class HostMiddleware(CommonMiddleware):
    """Middleware that refuses foreign hosts as Django does, except for health probes and scrapes
    of metrics: these use the address of a container, which no setting can name.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        is_read = request.method in ("GET", "HEAD")
        if is_read and request.path_info in (settings.HEALTH_ADDRESS, settings.METRICS_ADDRESS):
            return None
        return super().process_request(request)


def _is_beyond_limit(length: str) -> bool:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    try:
        # Parsed as Django parses the header: "+99", "1_000" and " 99 " are numbers too.
        return int(length) > limit
    except ValueError:
        # Text that is no number counts as 0: so Django counts, and reads no more of the body.
        # Python refuses a number of thousands of digits as well: that is a large body.
        return len(length) > _MOST_DIGITS
