"""The watches of freshness, kept in step with the declarations in force."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import DurationField, F, Value
from django.db.models.functions import Cast

from assets_app.models import Asset, Bundle, FreshnessWatch, LatePartition, Schedule
from assets_app.queries.keys import still_known
from slicewise.declaring import ExternalSpec, Freshness, ProducerSpec
from slicewise.partitions import ticks_after_windows

_BATCH_SIZE = 1_000


def store_watches(
    bundle: Bundle,
    producers: Sequence[ProducerSpec],
    external: Sequence[ExternalSpec],
    *,
    now: datetime,
) -> None:
    """Bring the watches of a bundle's declared assets up to date; call in a transaction.

    A new watch is about windows that are not late yet: a declaration makes no history overdue. Of
    an asset with a schedule, the windows count that have ended since the schedule began: no tick
    takes an earlier one. A watch with a changed freshness goes on from its last window. Call before
    the schedules are stored: a schedule that is not stored yet begins now.
    """
    declared = _freshness_by_asset(producers, external)
    # The watches alone: a lock of the assets would keep new runs waiting until the commit.
    locked = FreshnessWatch.objects.select_for_update(of=("self",)).filter(asset__bundle=bundle)
    watches = {watch.asset_id: watch for watch in locked}
    assets = Asset.objects.filter(bundle=bundle, active=True).select_related("partition_definition")
    watched = list(assets.filter(name__in=[name for name, value in declared.items() if value]))
    # An asset of a broken file is not declared, and stays as it was.
    undeclared_ids = set(assets.exclude(name__in=declared).values_list("pk", flat=True))
    ended = watches.keys() - {asset.pk for asset in watched} - undeclared_ids
    _end_watches(ended)
    producers_watched = [asset.producer_id for asset in watched if asset.producer_id]
    schedules = Schedule.objects.filter(producer__in=producers_watched, rule__isnull=False)
    began_by_producer: dict[int | None, datetime] = dict(
        schedules.values_list("producer", "began_at")
    )
    created: list[FreshnessWatch] = []
    changed: list[FreshnessWatch] = []
    for asset in watched:
        watch = watches.get(asset.pk)
        began_at = began_by_producer.get(asset.producer_id, now) if asset.schedule else None
        row = _watch_of(asset, declared[asset.name] or {}, watch, now, began_at)
        (created if watch is None else changed).append(row)
    FreshnessWatch.objects.bulk_create(created, batch_size=_BATCH_SIZE)
    FreshnessWatch.objects.bulk_update(
        changed, ["identity", "freshness", "watched_until", "next_at"], batch_size=_BATCH_SIZE
    )
    _forget_unknown_keys(watched)


def next_late_at(asset: Asset, watch: FreshnessWatch) -> datetime | None:
    """Return when the next window of a watched asset is late; None without a further window."""
    definition = asset.definition
    if definition is None or definition.time_dimension is None:
        return None
    mark = earliest_mark(watch.freshness)
    return ticks_after_windows(definition, mark).next_after(watch.watched_until + mark)


def earliest_mark(freshness: Mapping[str, Any]) -> timedelta:
    """Return the span after a window from which on a missing partition is late."""
    value = Freshness.from_json(freshness)
    return value.warn or value.within


def _freshness_by_asset(
    producers: Sequence[ProducerSpec], external: Sequence[ExternalSpec]
) -> dict[str, dict[str, Any] | None]:
    declared = {
        outlet.name: spec.freshness_of(outlet) for spec in producers for outlet in spec.outlets
    }
    return declared | {spec.name: spec.freshness for spec in external}


def _end_watches(asset_ids: set[int]) -> None:
    FreshnessWatch.objects.filter(asset__in=asset_ids).delete()
    LatePartition.objects.filter(asset__in=asset_ids).delete()


def _watch_of(
    asset: Asset,
    freshness: dict[str, Any],
    watch: FreshnessWatch | None,
    now: datetime,
    began_at: datetime | None,
) -> FreshnessWatch:
    """Return the watch of an asset as it is to be stored; `began_at` is that of its schedule."""
    if watch is None or watch.identity != asset.identity:
        LatePartition.objects.filter(asset=asset).delete()
        new = watch or FreshnessWatch(asset=asset)
        new.identity, new.freshness = asset.identity, freshness
        not_late_since = now - earliest_mark(freshness)
        new.watched_until = max(not_late_since, began_at or not_late_since)
        new.next_at = next_late_at(asset, new)
        return new
    if watch.freshness != freshness:
        watch.freshness = freshness
        _move_marks(asset, freshness)
    watch.next_at = next_late_at(asset, watch)
    return watch


def _move_marks(asset: Asset, freshness: dict[str, Any]) -> None:
    """Set the marks of an asset's late partitions by a changed freshness."""
    late, overdue = earliest_mark(freshness), Freshness.from_json(freshness).within
    LatePartition.objects.filter(asset=asset).update(
        late_at=F("window_end") + Cast(Value(late), DurationField()),
        overdue_at=F("window_end") + Cast(Value(overdue), DurationField()),
    )


def _forget_unknown_keys(assets: Sequence[Asset]) -> None:
    """Delete late partitions that the definition of the asset no longer has."""
    by_asset = {asset.pk: asset for asset in assets}
    keys: dict[int, list[str]] = {}
    late = LatePartition.objects.filter(asset__in=by_asset)
    for asset_id, key in late.values_list("asset_id", "key"):
        keys.setdefault(asset_id, []).append(key)
    for asset_id, asset_keys in keys.items():
        definition = by_asset[asset_id].definition
        known_keys = [] if definition is None else still_known(definition, asset_keys)
        unknown = set(asset_keys) - {key.text for key in known_keys}
        if unknown:
            late.filter(asset=asset_id, key__in=unknown).delete()
