"""What the frame of every page needs to know of whoever looks at it."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts_app.policy import opens_admin


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Return whether the admin site is among the links; asked only by pages that have links."""
    return {"opens_admin": SimpleLazyObject(lambda: opens_admin(request.user))}
