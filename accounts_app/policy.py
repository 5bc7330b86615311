"""The permissions of users, decided in this module alone.

Pages, API, admin and command line all ask the policy. Roles are Django groups with the names of
`Role`; a superuser is an admin, and every signed-in user may view. An action that a user's roles do
not allow may be granted for single assets, or for groups of assets.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q

from accounts_app.models import Grant, User
from slicewise.texts import listed


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"


class Action(StrEnum):
    VIEW = "view"
    MATERIALIZE = "materialize"
    REPORT = "report writes"
    BACKFILL = "backfill"
    CANCEL = "cancel"
    PAUSE = "pause"
    SYNC = "sync"
    PARTITIONS = "add or remove partitions"
    ALERTS = "change alerts"
    ADMINISTER = "administer"


_OPERATOR = frozenset(
    {Action.VIEW, Action.MATERIALIZE, Action.REPORT, Action.BACKFILL, Action.CANCEL}
)
_EDITOR = _OPERATOR | {Action.PAUSE, Action.SYNC, Action.PARTITIONS, Action.ALERTS}
GRANTS: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.VIEW}),
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: frozenset(_EDITOR),
    Role.ADMIN: frozenset(Action),
}

# The actions that a grant on an asset allows: to start its backfills, and so to stop backfills.
GRANTED: dict[str, frozenset[Action]] = {
    Grant.Permission.BACKFILL: frozenset({Action.BACKFILL, Action.CANCEL}),
}
_MOST_NAMED = 10

AnyUser = User | AnonymousUser


class NamedAsset(Protocol):
    """The attributes of an asset that the policy reads."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reach:
    """The assets on which a user may perform an action: all assets, or assets by name and group."""

    everything: bool = False
    assets: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.assets or self.groups)

    def covers(self, asset: NamedAsset) -> bool:
        """Return whether the asset is within reach."""
        return self.everything or asset.name in self.assets or asset.group in self.groups


def may(user: AnyUser, action: Action) -> bool:
    """Return whether the user may perform the action; inactive and anonymous users may not."""
    if not user.is_authenticated or not user.is_active:
        return False
    if user.is_superuser:
        return True
    return action is Action.VIEW or any(action in GRANTS[role] for role in roles_of(user))


def require(user: AnyUser, action: Action) -> None:
    """Raise ``PermissionDenied`` with a sentence unless the user may perform the action."""
    if not may(user, action):
        name = user.get_username() or "An anonymous user"
        raise PermissionDenied(
            f"{name} may not {action.value}: this needs the role {_min_role(action)}."
        )


def require_for_some(user: AnyUser, action: Action) -> None:
    """Raise ``PermissionDenied`` with a sentence unless the user may act on at least one asset.

    Called before the request is read, which names the assets: a user who may act on no asset learns
    no more.
    """
    if not reach(user, action):
        require(user, action)


def opens_admin(user: AnyUser) -> bool:
    """Return whether the user may open the admin site: the staff, to look, and the role admin."""
    return user.is_active and (user.is_staff or may(user, Action.ADMINISTER))


def reach(user: AnyUser, action: Action) -> Reach:
    """Return the assets on which the user may act, by role or grant: two statements at most."""
    if may(user, action):
        return Reach(everything=True)
    granting = [permission for permission, actions in GRANTED.items() if action in actions]
    if not granting or not user.is_authenticated or not user.is_active:
        return Reach()
    grants = Grant.objects.filter(Q(person=user.pk) | Q(people__in=user.groups.all()))
    names = grants.filter(permission__in=granting).values_list("asset", "asset_group")
    granted_names = list(names.distinct())
    return Reach(
        assets=frozenset(asset for asset, _ in granted_names if asset),
        groups=frozenset(group for _, group in granted_names if group),
    )


def granted_names(user: User) -> list[str]:
    """Return the assets and groups of assets that grants let the user backfill, sorted."""
    within = reach(user, Action.BACKFILL)
    return sorted(within.assets) + [f"group {name}" for name in sorted(within.groups)]


def may_for_assets(user: AnyUser, action: Action, assets: Iterable[NamedAsset]) -> bool:
    """Return whether the user may perform the action on every one of the assets."""
    within = reach(user, action)
    return bool(within) and all(within.covers(asset) for asset in assets)


def require_for_assets(user: AnyUser, action: Action, assets: Iterable[NamedAsset]) -> None:
    """Raise ``PermissionDenied`` that names each asset on which the user may not perform the
    action.

    Every asset is checked: a grant on an asset does not include downstream assets.
    """
    within = reach(user, action)
    refused_names = sorted({asset.name for asset in assets if not within.covers(asset)})
    if not refused_names:
        return
    named = listed(refused_names, _MOST_NAMED)
    name = user.get_username() or "An anonymous user"
    granting = [permission for permission, actions in GRANTED.items() if action in actions]
    on_each = f", or the permission {granting[0]} on each asset or its group" if granting else ""
    raise PermissionDenied(
        f"{name} may not {action.value} {named}: this needs the role {_min_role(action)}{on_each}."
    )


def roles_of(user: AnyUser) -> set[Role]:
    """Return the user's roles, read once per user object, since a page asks several times."""
    roles: set[Role] | None = getattr(user, "_slicewise_roles", None)
    if roles is None:
        group_names = set(user.groups.values_list("name", flat=True))
        roles = {role for role in Role if role.value in group_names}
        user._slicewise_roles = roles  # type: ignore[union-attr]
    return roles


def _min_role(action: Action) -> str:
    return next(role.value for role in Role if action in GRANTS[role])
