"""The one place that says who may do what.

Pages, API, admin and command line all ask here. Roles are Django groups of these names; a
superuser is an admin, and whoever is signed in may look.
"""

from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied

from accounts_app.models import User


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"


class Action(StrEnum):
    VIEW = "view"
    MATERIALIZE = "materialize"
    BACKFILL = "backfill"
    CANCEL = "cancel"
    PAUSE = "pause"
    SYNC = "sync"
    ADMINISTER = "administer"


_OPERATOR = frozenset({Action.VIEW, Action.MATERIALIZE, Action.BACKFILL, Action.CANCEL})
_EDITOR = _OPERATOR | {Action.PAUSE, Action.SYNC}
GRANTS: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.VIEW}),
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: frozenset(_EDITOR),
    Role.ADMIN: frozenset(Action),
}

type_of_user = User | AnonymousUser


def may(user: type_of_user, action: Action) -> bool:
    """Whether the user may do this. Inactive and anonymous users may do nothing."""
    if not user.is_authenticated or not user.is_active:
        return False
    if user.is_superuser:
        return True
    return action is Action.VIEW or any(action in GRANTS[role] for role in roles_of(user))


def require(user: type_of_user, action: Action) -> None:
    """Raise ``PermissionDenied`` with a sentence unless the user may do this."""
    if not may(user, action):
        name = user.get_username() or "Nobody who is not signed in"
        raise PermissionDenied(
            f"{name} may not {action.value}: this needs the role {_least(action)}."
        )


def roles_of(user: type_of_user) -> set[Role]:
    """The user's roles: read once per user object, since a page asks several times."""
    known: set[Role] | None = getattr(user, "_slicewise_roles", None)
    if known is None:
        names = set(user.groups.values_list("name", flat=True))
        known = {role for role in Role if role.value in names}
        user._slicewise_roles = known  # type: ignore[union-attr]
    return known


def _least(action: Action) -> str:
    return next(role.value for role in Role if action in GRANTS[role])
