"""Ranges that people ask for again and again, as the first and the last partition of an asset."""

from datetime import date, datetime, timedelta

from django.db.models import Max

from accounts_app.errors import InvalidRequest
from assets_app.models import Asset, AssetPartition, PartitionState
from slicewise import PartitionByTime
from slicewise.zones import to_instant

PRESETS = {
    "7": "Last 7 days",
    "30": "Last 30 days",
    "90": "Last 90 days",
    "month": "This month",
    "success": "Since last materialized",
    "all": "All",
}


# A definition without a start has windows for ever; this far back is "all" of it.
_FAR = timedelta(days=3653)


def preset_ends(asset: Asset, preset: str, now: datetime) -> tuple[str, str]:
    """Return the keys of the first and the last partition of a preset, both over by now.

    Days are counted back from the end of the last partition, so that a preset also fits an asset
    that has ended. Raises InvalidRequest where the asset has no partition in the preset.
    """
    rule: PartitionByTime | None = asset.definition and asset.definition.time_dimension
    if rule is None:
        raise InvalidRequest({"asset": f"{asset.name} has no partitions by time."})
    over = rule.windows(rule.start or now - _FAR, now)
    if not len(over):
        raise InvalidRequest({"start": f"No partition of {asset.name} has ended yet."})
    since = _since(asset, rule, preset, now, over[-1].end)
    chosen = over if since is None else rule.windows(since, now)
    if not len(chosen):
        raise InvalidRequest({"start": f"{PRESETS[preset]}: {asset.name} has no ended partitions."})
    return chosen[0].text, chosen[-1].text


def _since(
    asset: Asset, rule: PartitionByTime, preset: str, now: datetime, last_end: datetime
) -> date | None:
    """From when on; None for all."""
    match preset:
        case "month":
            return _local(rule, now).date().replace(day=1)
        case "success":
            return _end_of_last_success(asset)
        case "7" | "30" | "90":
            # By the clock: a day in which it changes is a day as well.
            return _local(rule, last_end).replace(tzinfo=None) - timedelta(days=int(preset))
        case _:
            return None


def _local(rule: PartitionByTime, at: datetime) -> datetime:
    return at.astimezone(rule.zone.tzinfo_at(to_instant(at)))


def _end_of_last_success(asset: Asset) -> datetime | None:
    there = AssetPartition.objects.filter(
        asset=asset, identity=asset.identity, state=PartitionState.MATERIALIZED
    )
    last: datetime | None = there.aggregate(last=Max("window_end"))["last"]
    return last
