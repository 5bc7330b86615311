"""The first authentication backend, which sets limits for pages, admin site and API."""

from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.exceptions import AxesBackendPermissionDenied
from django.http import HttpRequest

from accounts_app.services.sign_in_limits import seconds_to_wait
from slicewise_server.web.addresses import limited_address


class SignInLimits(AxesStandaloneBackend):  # type: ignore[misc]
    """Backend that refuses attempts beyond the limits before any hashing, and admits no user."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **more: Any,
    ) -> None:
        wait = 0 if request is None else seconds_to_wait(username, limited_address(request))
        if wait:
            # Read by axes' middleware, by the audit trail, and for the header Retry-After.
            request.axes_locked_out = True  # type: ignore[union-attr]
            request.sign_in_refused = True  # type: ignore[union-attr]
            request.sign_in_wait = wait  # type: ignore[union-attr]
            raise AxesBackendPermissionDenied("There were too many attempts.")
        super().authenticate(request, username, password, **more)
