"""The policy for pages that write: asked before a page looks at the form that was sent."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse

from accounts_app import policy
from accounts_app.models import User

View = Callable[..., HttpResponse]


def posts_need(action: policy.Action, *, on_some_asset: bool = False) -> Callable[[View], View]:
    """Return a decorator of views: a POST raises PermissionDenied unless its user may perform the
    action.

    With ``on_some_asset``, the user has to be allowed to act on at least one asset: the form names
    the assets, and the view or its service asks the policy about these.
    """
    check = policy.require_for_some if on_some_asset else policy.require

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: object, **named: object) -> HttpResponse:
            if request.method == "POST":
                check(request.user, action)
            return view(request, *args, **named)

        return checked

    return decorate


def person_of(request: HttpRequest) -> User:
    """Return the user of a request that ``login_required`` or the admin site has let through."""
    assert isinstance(request.user, User)  # noqa: S101
    return request.user
