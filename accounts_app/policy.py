"""The one place that says who may do what.

Pages, API, admin and command line all ask here. Roles are Django groups of these names; a
superuser is an admin, and whoever is signed in may look. What no role allows may be granted for
single assets, or for groups of assets.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q

from accounts_app.models import Grant, User


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
    ADMINISTER = "administer"


_OPERATOR = frozenset(
    {Action.VIEW, Action.MATERIALIZE, Action.REPORT, Action.BACKFILL, Action.CANCEL}
)
_EDITOR = _OPERATOR | {Action.PAUSE, Action.SYNC, Action.PARTITIONS}
GRANTS: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.VIEW}),
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: frozenset(_EDITOR),
    Role.ADMIN: frozenset(Action),
}

# What a grant on an asset allows: to start backfills of it, and so to stop them.
GRANTED: dict[str, frozenset[Action]] = {
    Grant.Permission.BACKFILL: frozenset({Action.BACKFILL, Action.CANCEL}),
}
_MOST_NAMED = 10

type_of_user = User | AnonymousUser


class NamedAsset(Protocol):
    """What the policy needs to know of an asset."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reach:
    """On which assets somebody may do something: on all, or on those of these names and groups."""

    everything: bool = False
    assets: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.assets or self.groups)

    def covers(self, asset: NamedAsset) -> bool:
        """Return whether the asset is covered."""
        return self.everything or asset.name in self.assets or asset.group in self.groups


def may(user: type_of_user, action: Action) -> bool:
    """Return whether the user may do this. Inactive and anonymous users may do nothing."""
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


def require_for_some(user: type_of_user, action: Action) -> None:
    """Raise ``PermissionDenied`` with a sentence unless the user may do this to some asset.

    Asked before a request is read that says to which: whoever may do it to none learns no more.
    """
    if not reach(user, action):
        require(user, action)


def opens_admin(user: type_of_user) -> bool:
    """Return whether the user may open the admin site: the staff, to look, and the role admin."""
    return user.is_active and (user.is_staff or may(user, Action.ADMINISTER))


def reach(user: type_of_user, action: Action) -> Reach:
    """Return the assets on which the user may do this, by role or grant: two statements at most."""
    if may(user, action):
        return Reach(everything=True)
    granting = [permission for permission, actions in GRANTED.items() if action in actions]
    if not granting or not user.is_authenticated or not user.is_active:
        return Reach()
    held = Grant.objects.filter(Q(person=user.pk) | Q(people__in=user.groups.all()))
    named = held.filter(permission__in=granting).values_list("asset", "asset_group")
    found = list(named.distinct())
    return Reach(
        assets=frozenset(asset for asset, _ in found if asset),
        groups=frozenset(group for _, group in found if group),
    )


def may_for_assets(user: type_of_user, action: Action, assets: Iterable[NamedAsset]) -> bool:
    """Return whether the user may do this to every one of the assets."""
    within = reach(user, action)
    return bool(within) and all(within.covers(asset) for asset in assets)


def require_for_assets(user: type_of_user, action: Action, assets: Iterable[NamedAsset]) -> None:
    """Raise ``PermissionDenied`` that names each of the assets to which the user may not do this.

    Every one is asked about: what follows an asset is not granted with it.
    """
    within = reach(user, action)
    refused = sorted({asset.name for asset in assets if not within.covers(asset)})
    if not refused:
        return
    named = ", ".join(refused[:_MOST_NAMED])
    if len(refused) > _MOST_NAMED:
        named += f" and {len(refused) - _MOST_NAMED} more"
    name = user.get_username() or "Nobody who is not signed in"
    granting = [permission for permission, actions in GRANTED.items() if action in actions]
    on_each = (
        f", or the permission {granting[0]} on each of them or on its group" if granting else ""
    )
    raise PermissionDenied(
        f"{name} may not {action.value} {named}: this needs the role {_least(action)}{on_each}."
    )


def roles_of(user: type_of_user) -> set[Role]:
    """Return the user's roles: read once per user object, since a page asks several times."""
    known: set[Role] | None = getattr(user, "_slicewise_roles", None)
    if known is None:
        names = set(user.groups.values_list("name", flat=True))
        known = {role for role in Role if role.value in names}
        user._slicewise_roles = known  # type: ignore[union-attr]
    return known


def _least(action: Action) -> str:
    return next(role.value for role in Role if action in GRANTS[role])
