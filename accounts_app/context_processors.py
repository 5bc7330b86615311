"""Values for the navigation of every page."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts_app.policy import opens_admin


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Return whether the user may open the admin site; computed only by pages that show links."""
    return {"opens_admin": SimpleLazyObject(lambda: opens_admin(request.user))}
