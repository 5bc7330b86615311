"""The data from which the partition grid of an asset is drawn: seven statements at most."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from django.db.models import Count, Min, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncDay, TruncMonth, TruncYear

from assets_app.models import Asset, AssetPartition, PartitionCount
from assets_app.queries.grid_overdue import overdue_shares
from assets_app.queries.grid_stale import stale_shares
from assets_app.queries.overdue import is_watched, late_marks
from assets_app.queries.staleness import changed_inputs
from partitions_app.grid.cells import Grid, PartitionFact
from partitions_app.grid.layouts import GridRequest, Layout, draw, layout
from partitions_app.grid.periods import Clock, midnight
from partitions_app.grid.share_cells import Bucketed
from partitions_app.state_badges import MISSING
from slicewise_server.web.kept_counts import kept_count

# A page has room for the reasons of so many stale cells; beyond, the pages of the partitions give
# the reasons.
_MOST_EXPLAINED = 300


def grid_page(asset: Asset, request: GridRequest, now: datetime) -> Grid:
    """Return one page of the asset's grid."""
    clock = clock_of(asset, now)
    page = layout(asset.definition, request, clock)
    if page.counts_unit:
        stale = stale_shares(asset, page)
        grid = draw(page, {}, _counts(asset, page, now, stale.by_cell))
        return replace(grid, is_stale_cut=stale.is_cut)
    facts = _with_staleness(asset, partition_facts(asset, page.keys))
    if is_watched(asset):
        facts = _with_lateness(asset, facts, page.keys, now)
    return draw(page, facts, {})


def _with_staleness(asset: Asset, facts: dict[str, PartitionFact]) -> dict[str, PartitionFact]:
    """Return the facts with the stale partitions. A result that takes long is kept for a while:
    each open page polls. A partition that was materialized since then is not marked.
    """
    stale: dict[str, tuple[int, str]] = kept_count(
        f"stale versions of {asset.pk} {asset.identity} {list(facts)}",
        lambda: _stale_versions(asset, facts),
    )
    marked = dict(facts)
    for key, (version, reason) in stale.items():
        if facts[key].version == version:
            marked[key] = replace(facts[key], is_stale=True, because=reason)
    return marked


def _stale_versions(asset: Asset, facts: Mapping[str, PartitionFact]) -> dict[str, tuple[int, str]]:
    """Return the version and the reason of each stale partition by key; the reasons are empty
    where there are too many.
    """
    changed = changed_inputs(asset, list(facts))
    stale_keys = changed.stale_keys()
    if len(stale_keys) > _MOST_EXPLAINED:
        reasons = dict.fromkeys(stale_keys, "")
    else:
        reasons = {key: newer.text for key, newer in changed.newer().items()}
    return {key: (facts[key].version, reason) for key, reason in reasons.items()}


def _with_lateness(
    asset: Asset, facts: dict[str, PartitionFact], keys: Sequence[str], now: datetime
) -> dict[str, PartitionFact]:
    """Return the facts with late partitions, also of partitions without a row."""
    marks = late_marks(asset, keys, now)
    return facts | {
        key: replace(facts.get(key, PartitionFact(MISSING.name)), lateness=mark.word)
        for key, mark in marks.items()
    }


def clock_of(asset: Asset, now: datetime) -> Clock:
    """Return now, and since when partitions are expected: activation, or the earliest partition.

    Only a definition without a start needs a query.
    """
    definition = asset.definition
    time_dimension = None if definition is None else definition.time_dimension
    if time_dimension is None or time_dimension.start is not None:
        return Clock(now, asset.activated_at)
    window = time_dimension.window_at(asset.activated_at)
    active = window.start if window else asset.activated_at
    earliest = _partitions(asset).aggregate(at=Min("window_start"))["at"]
    return Clock(now, min(active, earliest or active))


def partition_facts(asset: Asset, keys: Sequence[str]) -> dict[str, PartitionFact]:
    """Return the status of the partitions of these keys that have a row."""
    rows = _partitions(asset).filter(key__in=keys)
    return {
        key: PartitionFact(state, run_state, version)
        for key, state, run_state, version in rows.values_list(
            "key", "state", "held_by__state", "version"
        )
    }


def _counts(
    asset: Asset, page: Layout, now: datetime, stale: Mapping[tuple[date, str], int]
) -> Bucketed:
    """Count partitions by stretch of time and segment, and by settled state; partitions that a run
    holds now count as held, missing partitions that are not there in time as overdue, and
    materialized partitions with a newer input as stale.
    """
    period, time_dimension = page.stretch
    counts: dict[tuple[date, str], dict[str, int]] = {}
    counted = PartitionCount.objects.filter(
        asset=asset, identity=asset.identity, bucket__gte=period.first,
        bucket__lt=period.stop,
    )  # fmt: skip
    held_rows = _partitions(asset).filter(
        held_by__isnull=False,
        window_start__gte=midnight(period.first, time_dimension.timezone),
        window_start__lt=midnight(period.stop, time_dimension.timezone),
    )
    for bucket, segment, state, number in _grouped(counted, page, Sum("count")):
        counts.setdefault((bucket, segment), {})[state] = number
    for bucket, segment, state, number in _grouped(held_rows, page, Count("pk")):
        states = counts.setdefault((bucket, segment), {})
        states[state] = states.get(state, 0) - number
        states["held"] = states.get("held", 0) + number
    for cell, number in overdue_shares(asset, page, now).items():
        counts.setdefault(cell, {})["overdue"] = number
    for cell, number in stale.items():
        counts.setdefault(cell, {})["stale"] = number
    return counts


def _grouped(rows: QuerySet[Any], page: Layout, number: Count | Sum) -> QuerySet[Any]:
    truncate = {"day": TruncDay, "month": TruncMonth, "year": TruncYear}[page.counts_unit or "day"]
    if page.has_segments:
        rows = rows.filter(segment__in=page.segments)
    # Truncation of a date gives a date; by day, the date is the bucket itself.
    bucket_start = TruncDate("bucket") if page.counts_unit == "day" else truncate("bucket")
    grouped: QuerySet[Any, Any] = (
        rows.values_list(bucket_start, "segment", "state").annotate(number=number).order_by()
    )
    return grouped


def _partitions(asset: Asset) -> QuerySet[AssetPartition]:
    return AssetPartition.objects.filter(asset=asset, identity=asset.identity)


def expected_count(asset: Asset, now: datetime, since: datetime | None = None) -> int | None:
    """Count the partitions that should exist by now, by arithmetic alone."""
    definition = asset.definition
    if definition is None:
        return 1
    time_dimension = definition.time_dimension
    if time_dimension is None or time_dimension.start is not None:
        total: int = (
            definition.count(until=now) if time_dimension is not None else definition.count()
        )
        return total
    window = time_dimension.window_at(asset.activated_at)
    start = min(moment for moment in (window and window.start, since, asset.activated_at) if moment)
    bounded: int = definition.count(start, now) if start < now else 0
    return bounded
