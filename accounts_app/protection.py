"""Middleware against large bodies, foreign hosts, and rights in browsers that no page needs."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

from accounts_app import answers

_Answer = Callable[[HttpRequest], HttpResponse]
_UNUSED_FEATURES = (
    "accelerometer", "autoplay", "bluetooth", "browsing-topics", "camera", "display-capture",
    "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment",
    "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip
_MOST_DIGITS = 18
_PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _UNUSED_FEATURES)


class PermissionsPolicyMiddleware:
    """Tells browsers that no page uses a camera, a place or the like, whatever it may hold."""

    def __init__(self, get_response: _Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", _PERMISSIONS_POLICY)
        return response


class BoundedBodyMiddleware:
    """Answers 413 to a body beyond ``DATA_UPLOAD_MAX_MEMORY_SIZE`` before any of it is read.

    Django bounds forms alone, and only what it keeps in memory of them. The length of a body that
    came without one is told by `config.serving`, which has read it.
    """

    def __init__(self, get_response: _Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_beyond_limit(request.META.get("CONTENT_LENGTH") or "0"):
            return answers.too_large(request)
        return self.get_response(request)


class HostMiddleware(CommonMiddleware):
    """Refuses hosts that are not ours, as Django does, but for probes of health: these come to the
    address of a container, which no setting can name.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        is_read = request.method in ("GET", "HEAD")
        if is_read and request.path_info == settings.HEALTH_ADDRESS:
            return None
        return super().process_request(request)


def _is_beyond_limit(length: str) -> bool:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    try:
        # As Django reads it: "+99", "1_000" and " 99 " are numbers too.
        return int(length) > limit
    except ValueError:
        # What is no number counts as 0, as for Django, which reads no more of it. Python refuses a
        # number of thousands of digits as well: that is a large body.
        return len(length) > _MOST_DIGITS
