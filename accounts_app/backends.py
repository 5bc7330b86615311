"""The first thing that is asked about a sign-in, by page, admin site and API alike."""

from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.exceptions import AxesBackendPermissionDenied
from django.http import HttpRequest


class SignInLimits(AxesStandaloneBackend):  # type: ignore[misc]
    """Refuses an attempt beyond the limits before a password is hashed; lets nobody in itself."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **more: Any,
    ) -> None:
        try:
            super().authenticate(request, username, password, **more)
        except AxesBackendPermissionDenied:
            # So that whoever hears of the failure knows that no password was tried.
            request.sign_in_refused = True  # type: ignore[union-attr]
            raise
