"""Partitions that a schedule missed while paused: unpausing queues none, a backfill can."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from urllib.parse import urlencode

from django.db.models import Count, Min, Q, QuerySet

import slicewise
from assets_app.models import Asset, AssetPartition
from assets_app.queries.keys import still_known
from assets_app.queries.missed_spans import spans_of
from assets_app.scheduling.descriptions import ScheduleDescription, describe_schedule
from assets_app.scheduling.missed_by_assets import is_on_record, missed_by_assets
from slicewise.partitions import LONGEST_SELECTION, ended_between

# Beyond, settled partitions are counted and not read: the list has no selection then, and its first
# and last partition are of all that ended.
_MOST_SUBTRACTED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The partitions that a schedule would have queued if its asset had not been paused."""

    count: int
    # Keys; for a schedule by time, texts of windows.
    first: str
    last: str
    # Selection of exactly these partitions; empty where the text is too long to be parsed, or for
    # an asset without partitions.
    selection: str
    # Query string that fills in the form of a backfill; empty where the asset has no time.
    form: str
    is_by_time: bool
    # False where older partitions, which were not examined, may be missed too.
    is_all: bool = True


def missed_by(asset: Asset, now: datetime) -> Missed | None:
    """Return the partitions that the schedule of the asset has missed; None where there are none.

    With a schedule by time: the windows that ended during the pause. With a schedule by assets: the
    partitions that upstream writes during the pause made due. Also after the pause, until a
    partition is materialized, `SCHEDULE_TICK_DAYS` have passed, or the asset is paused once more.
    """
    schedule = describe_schedule(asset)
    if schedule is None:
        return None
    by_rule = _by_time if schedule.row.by_time else _by_assets
    return by_rule(asset, schedule, now)


def _by_time(asset: Asset, schedule: ScheduleDescription, now: datetime) -> Missed | None:
    """Return the windows that a schedule by time has missed.

    Partitions without a window are not missed: the next tick queues such partitions.
    """
    definition, row = asset.definition, schedule.row
    if definition is None or definition.time_dimension is None:
        return None
    if not asset.paused and not (row.unpaused_at and is_on_record(row, now)):
        return None
    spans = spans_of(row, now)
    sets = [ended_between(definition, since, until) for since, until in spans]
    ended = reduce(or_, sets, slicewise.PartitionSet.of(definition, []))
    if not ended:
        return None
    settled = _settled(asset, ended)
    number = settled.count()
    is_exact = number <= _MOST_SUBTRACTED
    missed = ended
    if is_exact and number:
        keys = still_known(definition, settled.values_list("key", flat=True))
        missed = ended - slicewise.PartitionSet.of(definition, keys)
    count = len(missed) if is_exact else len(ended) - _known_number(ended, settled)
    if count <= 0:
        return None
    ends = {"start": missed[0].time.text, "end": missed[-1].time.text}
    selection, is_gapless = _selection(missed) if is_exact else "", len(spans) == 1
    return Missed(
        count=count, first=ends["start"], last=ends["end"], selection=selection,
        # Windows between two spans were not missed.
        form=urlencode(ends if is_gapless or not selection else {"selection": selection}),
        is_by_time=True,
    )  # fmt: skip


def _settled(asset: Asset, partitions: slicewise.PartitionSet) -> QuerySet[AssetPartition]:
    """Select the partitions within the span of some consecutive partitions that are materialized,
    or that a run holds.
    """
    return AssetPartition.objects.filter(
        Q(version__gt=0) | Q(held_by__isnull=False),
        asset=asset,
        identity=asset.identity,
        window_start__range=(partitions[0].time.start, partitions[-1].time.start),
    )


def _known_number(partitions: slicewise.PartitionSet, rows: QuerySet[AssetPartition]) -> int:
    """Count the rows of these partitions: not those of windows or segments that the definition has
    lost.
    """
    definition = partitions.definition
    assert definition is not None  # noqa: S101  (the caller has checked)
    start_column = rows.order_by().values_list("window_start", flat=True).distinct()
    starts = {start for start in start_column if start is not None}
    of_known_windows = rows.exclude(window_start__in=starts - _starts_among(partitions, starts))
    by_segment = of_known_windows.order_by().values("segment")
    samples = by_segment.annotate(number=Count("pk"), sample=Min("key"))
    numbers = dict(samples.values_list("sample", "number"))
    return sum(numbers[text] for text in numbers if any(still_known(definition, [text])))


def _starts_among(
    partitions: slicewise.PartitionSet, starts: Collection[datetime]
) -> set[datetime]:
    """Return which of these moments are starts of windows of some partitions."""
    assert partitions.definition is not None  # noqa: S101
    time_definition = partitions.definition.time_dimension
    assert time_definition is not None  # noqa: S101
    windows = filter(None, map(time_definition.window_at, starts))
    spans = {
        (key_range.first.start, key_range.last.start)
        for key_range in partitions.ranges
        if key_range.first is not None and key_range.last is not None
    }
    return {
        window.start
        for window in windows
        if window.start in starts and any(a <= window.start <= b for a, b in spans)
    }


def _by_assets(asset: Asset, schedule: ScheduleDescription, now: datetime) -> Missed | None:
    try:
        missed = missed_by_assets(asset, schedule.row, now)
    except slicewise.DefinitionError:
        # An old rule, which this version or this host cannot read any more, and cannot evaluate.
        return None
    if missed is None or not missed[0]:
        return None
    due, is_all = missed
    definition, selection, form = due.definition, _selection(due), ""
    if definition is not None and definition.time_dimension is not None:
        ends = {"start": due[0].time.text, "end": due[-1].time.text}
        # Some partitions may be materialized from older data.
        form = urlencode(({"selection": selection} if selection else ends) | {"existing": "stale"})
    first, last = ("", "") if definition is None else (due[0].text, due[-1].text)
    return Missed(
        count=len(due), first=first, last=last, selection=selection, form=form,
        is_by_time=False, is_all=is_all,
    )  # fmt: skip


def _selection(partitions: slicewise.PartitionSet) -> str:
    text = "" if partitions.definition is None else partitions.text
    return text if len(text) <= LONGEST_SELECTION else ""
