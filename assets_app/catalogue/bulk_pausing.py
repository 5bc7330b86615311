"""Pausing and unpausing several assets, with the reason for each unchanged asset."""

from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import OperationalError
from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure

from accounts_app import policy
from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.models import Asset, Schedule
from slicewise_server.web.request_errors import InvalidRequest

MOST_AT_ONCE = 200
# Why an asset stays that is in the asked state, by whether a pause is asked for.
_UNCHANGED = {True: "already paused", False: "not paused"}
_IN_USE = (DeadlockDetected, LockNotAvailable, SerializationFailure)


@dataclass(slots=True)
class BulkPause:
    """The names of the changed assets, and the reasons why other assets stay, by name."""

    changed: list[str] = field(default_factory=list)
    unchanged: dict[str, str] = field(default_factory=dict)


def set_paused_in_bulk(ids: Collection[int], paused: bool, *, user: User) -> BulkPause:
    """Pause or unpause each of the assets, each in a separate transaction, in order of name.

    Assets that one function materializes are paused together, and all of these are named. Raises
    InvalidRequest on ``assets``, PermissionDenied, and OperationalError for a lost database.
    """
    policy.require(user, policy.Action.PAUSE)
    asset_ids = set(ids)
    if not 1 <= len(asset_ids) <= MOST_AT_ONCE:
        raise InvalidRequest({"assets": f"Between 1 and {MOST_AT_ONCE}, not {len(asset_ids)}."})
    rows = Asset.objects.filter(pk__in=asset_ids).select_related("producer__schedule")
    assets = list(rows.order_by("name"))
    result = BulkPause()
    for asset in assets:
        if asset.name in result.changed:
            continue
        if reason := _reason_to_stay(asset, paused):
            result.unchanged[asset.name] = reason
            continue
        try:
            changed = set_paused(asset, paused, user=user)
        except OperationalError as error:
            if not isinstance(error.__cause__, _IN_USE):
                raise
            result.unchanged[asset.name] = "in use by another request: try again"
            continue
        result.changed += changed
        if not changed:
            # Another person was quicker.
            result.unchanged[asset.name] = _UNCHANGED[paused]
    for pk in sorted(asset_ids - {asset.pk for asset in assets}):
        result.unchanged[f"asset {pk}"] = "no such asset"
    return result


def _reason_to_stay(asset: Asset, paused: bool) -> str:
    """Return why the asset stays unchanged; empty for an asset to pause or unpause."""
    if asset.paused == paused:
        return _UNCHANGED[paused]
    schedule = Schedule.of(asset)
    has_schedule = asset.active and schedule is not None and schedule.rule is not None
    # A pause that began under an earlier schedule can end without one.
    return "no schedule" if paused and not has_schedule else ""
