"""Downstream partitions that need nonexistent upstream partitions (need rule 7)."""

from collections.abc import Iterator, Sequence

from slicewise.keys.partition_key import Interval
from slicewise.mapping.overlap import overlapping
from slicewise.mapping.partition_mapping import (
    PartitionMapping,
    WindowMapping,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.mapping.relation import matching_segments
from slicewise.partitions.definition import PartitionSet
from slicewise.partitions.nonexistent import Nonexistent
from slicewise.partitions.runtime_keys import Definition
from slicewise.partitions.window_ranges import WindowRange


def blocked_partitions(
    downstream: Definition,
    upstream: Definition,
    chosen: PartitionSet,
    blocking: Nonexistent,
    mapping: PartitionMapping | None = None,
) -> PartitionSet:
    """Return the chosen downstream partitions that need some of the nonexistent upstream partitions
    ``blocking``, which name no excluded windows.
    """
    if not blocking:
        return PartitionSet(downstream, ())
    if mapping is not None and not isinstance(mapping, WindowMapping):
        # With such a mapping all downstream partitions need the same upstream partitions.
        return chosen
    blocked = PartitionSet(downstream, ())
    if blocking.segments:
        blocked |= _of_lost_segments(downstream, upstream, chosen) & _of_needed_windows(
            downstream, upstream, chosen, mapping
        )
    if blocking.spans:
        blocked |= chosen & PartitionSet(
            downstream, _of_lost_windows(upstream, chosen, blocking.spans, mapping)
        )
    return blocked


def _of_lost_segments(
    downstream: Definition, upstream: Definition, chosen: PartitionSet
) -> PartitionSet:
    match = matching_segments(downstream, upstream, chosen.space)
    used_segments = frozenset().union(*(segments for _, _, segments in chosen.window_ranges))
    lost_segments = frozenset(number for number in used_segments if match(frozenset({number}))[1])
    window_ranges = (
        WindowRange(first, stop, segments & lost_segments)
        for first, stop, segments in chosen.window_ranges
    )
    return PartitionSet(downstream, window_ranges)


def _of_needed_windows(
    downstream: Definition,
    upstream: Definition,
    chosen: PartitionSet,
    mapping: WindowMapping | None,
) -> PartitionSet:
    """Return the chosen partitions that need at least one upstream window which is not excluded:
    of excluded windows no segment is needed either.
    """
    downstream_time, upstream_time = (
        definition and definition.time_dimension for definition in (downstream, upstream)
    )
    if (
        downstream_time is None
        or upstream_time is None
        or not upstream_time.space.time.has_exclusions
    ):
        return chosen
    windows = PartitionSet(
        downstream_time,
        [window_range._replace(segments=frozenset({0})) for window_range in chosen.window_ranges],
    )
    needed = upstream_partitions(downstream_time, upstream_time, windows, mapping)
    reading_windows = downstream_partitions(upstream_time, downstream_time, needed, mapping)
    of_all_segments = chosen.space.segments.all
    window_ranges = [
        window_range._replace(segments=of_all_segments)
        for window_range in reading_windows.window_ranges
    ]
    if needed.blocking.spans:
        window_ranges += _of_lost_windows(upstream, chosen, needed.blocking.spans, mapping)
    return PartitionSet(downstream, window_ranges)


def _of_lost_windows(
    upstream: Definition,
    chosen: PartitionSet,
    lost_windows: Sequence[Interval],
    mapping: WindowMapping | None,
) -> Iterator[WindowRange]:
    assert upstream is not None  # noqa: S101  (windows belong to a definition)
    upstream_windows, windows = upstream.space.time, chosen.space.time
    downstream_ranges = overlapping if mapping is None else mapping.downstream_windows
    ticks = upstream_windows.ticks
    firsts = [ticks.rank(span.first_second) for span in lost_windows]
    stops = [ticks.rank(span.stop_second) for span in lost_windows]
    for first, stop in downstream_ranges(upstream_windows, (firsts, stops), windows):
        yield WindowRange(*windows.clip(first, stop), chosen.space.segments.all)
