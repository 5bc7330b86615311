"""Frequent ranges, as the first and the last partition of an asset."""

from datetime import date, datetime, timedelta

from django.db.models import Max

from assets_app.models import Asset, AssetPartition, PartitionState
from slicewise.calendar import to_instant
from slicewise.partitions import TimeDefinition
from slicewise_server.web.request_errors import InvalidRequest

PRESETS = {
    "7": "Last 7 days",
    "30": "Last 30 days",
    "90": "Last 90 days",
    "month": "This month",
    "success": "Since last materialized",
    "all": "All",
}


# A definition without a start has windows for ever; "all" reaches this far back.
_FAR = timedelta(days=3653)


def preset_ends(asset: Asset, preset: str, now: datetime) -> tuple[str, str]:
    """Return the keys of the first and the last partition of a preset; both partitions have ended
    by now.

    Days are counted back from the end of the last partition, so that a preset also fits an asset
    whose time has ended. Raises InvalidRequest where the asset has no partition in the preset.
    """
    definition = asset.definition
    time_dimension = None if definition is None else definition.time_dimension
    if time_dimension is None:
        raise InvalidRequest({"asset": f"{asset.name} has no partitions by time."})
    ended_windows = time_dimension.windows(time_dimension.start or now - _FAR, now)
    if not len(ended_windows):
        raise InvalidRequest({"start": f"No partition of {asset.name} has ended yet."})
    since = _since(asset, time_dimension, preset, now, ended_windows[-1].end)
    chosen = ended_windows if since is None else time_dimension.windows(since, now)
    if not len(chosen):
        text = f"{PRESETS[preset]}: {asset.name} has no ended partitions."
        if preset == "success":
            text = f"All partitions of {asset.name} ended before the last materialized one."
        raise InvalidRequest({"start": text})
    return chosen[0].text, chosen[-1].text


def _since(
    asset: Asset, time_dimension: TimeDefinition, preset: str, now: datetime, last_end: datetime
) -> date | None:
    """Return the time at which the preset begins; None for all partitions."""
    match preset:
        case "month":
            return _local(time_dimension, now).date().replace(day=1)
        case "success":
            return _end_of_last_success(asset)
        case "7" | "30" | "90":
            # By the clock on the wall: a day on which the clock changes is a day as well.
            return _local(time_dimension, last_end).replace(tzinfo=None) - timedelta(
                days=int(preset)
            )
        case _:
            return None


def _local(time_dimension: TimeDefinition, instant: datetime) -> datetime:
    return instant.astimezone(time_dimension.zone.tzinfo_at(to_instant(instant)))


def _end_of_last_success(asset: Asset) -> datetime | None:
    materialized = AssetPartition.objects.filter(
        asset=asset, identity=asset.identity, state=PartitionState.MATERIALIZED
    )
    last: datetime | None = materialized.aggregate(last=Max("window_end"))["last"]
    return last
