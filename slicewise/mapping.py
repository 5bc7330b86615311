"""Which partitions of one asset those of another need (calendar, "Which upstream partitions")."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import product

from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError
from slicewise.intervals import Interval, make_interval
from slicewise.keys import SEPARATOR
from slicewise.moments import Moment
from slicewise.partition_set import Nonexistent, PartitionSet, Segments, Slab
from slicewise.space import WHOLE_SPACE, Space
from slicewise.windows import Windows

Definition = PartitionDefinition | None
Span = tuple[int, int]


def upstream_partitions(
    downstream: Definition,
    upstream: Definition,
    keys: object,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> PartitionSet:
    """The upstream partitions that some downstream partitions need.

    `keys` is one key of the downstream definition, a list of keys or a PartitionSet; a definition
    of None is that of an asset that is not partitioned. Windows need all that overlap them,
    segments the equal ones, and a dimension that only one side has is needed whole: of time, the
    part in [since, until) and the upstream's bounds; UnboundedPartitionsError where neither bounds
    a side. What is needed and does not exist is in `.nonexistent`.
    """
    return _related(downstream, upstream, keys, since, until)


def downstream_partitions(
    upstream: Definition,
    downstream: Definition,
    keys: object,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> PartitionSet:
    """The downstream partitions that need some of the given upstream ones.

    The mirror image of `upstream_partitions`: overlap and equality hold both ways.
    """
    return _related(upstream, downstream, keys, since, until)


def _related(
    source: Definition, target: Definition, keys: object, since: Moment | None, until: Moment | None
) -> PartitionSet:
    chosen = _as_set(source, keys)
    space = WHOLE_SPACE if target is None else target.space
    mapped = _segment_mapping(chosen.space, space)
    everything = _all_windows(target, chosen, since, until)
    groups: dict[Segments, list[Span]] = {}
    for first, stop, segments in chosen.slabs:
        groups.setdefault(segments, []).append((first, stop))
    slabs: list[Slab] = []
    absent: list[Span] = []
    lost: dict[str, None] = {}
    for segments, ranges in groups.items():
        counterparts, missing = mapped(segments)
        lost.update(dict.fromkeys(missing))
        wanted = everything or space.time.overlapping(chosen.space.time.instants(ranges))
        for numbers in wanted:
            found = space.windows.clip(*numbers) if space.windows else numbers
            slabs.append(Slab(*found, counterparts))
            absent += _missing(space.windows, numbers, found) if space.windows else ()
    return PartitionSet(target, slabs, Nonexistent(tuple(_merged(absent, space)), tuple(lost)))


def _as_set(definition: Definition, keys: object) -> PartitionSet:
    if isinstance(keys, list):
        return PartitionSet.of(definition, keys)
    if not isinstance(keys, PartitionSet):
        return PartitionSet.of(definition, [keys])
    if keys.definition != definition:
        raise PartitionKeyError("the set of partitions is one of another definition")
    return keys


def _all_windows(
    target: Definition, chosen: PartitionSet, since: Moment | None, until: Moment | None
) -> list[Span]:
    """All windows of the target where the source has no time to tell which; else nothing."""
    if target is None or target.time_dimension is None:
        return [(0, 1)]
    if chosen.space.windows is not None:
        return []
    return [target.space.between(*target.time_dimension.read_bounds(since, until))]


def _missing(windows: Windows, wanted: Span, found: Span) -> Iterator[Span]:
    """Numbers of wanted windows that are out of bounds or excluded."""
    if found[0] >= found[1]:
        yield wanted
        return
    yield wanted[0], found[0]
    yield found[1], wanted[1]
    yield from ((number, number + 1) for number in windows.excluded(*found))


def _merged(spans: Iterable[Span], target: Space) -> Iterator[Interval]:
    """Ranges of window numbers as spans of time, in order and merged."""
    merged: list[Span] = []
    for first, stop in sorted(span for span in spans if span[0] < span[1]):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((first, stop))
    for first, stop in merged:
        ticks = target.time.ticks
        yield make_interval(ticks.tick(first), ticks.tick(stop), target.time.zone)


MapSegments = Callable[[Segments], tuple[Segments, tuple[str, ...]]]


def _segment_mapping(source: Space, target: Space) -> MapSegments:
    """How segments of one space become those of another, and which texts have no counterpart."""
    pairs = _paired(source.segment_names, target.segment_names)
    lists = source.segments.lists, target.segments.lists
    whole = [range(len(each)) for each in lists[1]]

    @lru_cache(maxsize=256)
    def mapped(segments: Segments) -> tuple[Segments, tuple[str, ...]]:
        if not pairs:
            return target.segments.all, ()
        shares = {
            tuple(places[mine] for mine, _ in pairs)
            for places in map(source.segments.places, segments)
        }
        found: set[int] = set()
        missing: list[str] = []
        for share in sorted(shares):
            texts = [
                lists[0][mine].texts[place] for place, (mine, _) in zip(share, pairs, strict=True)
            ]
            axes: list[Iterable[int]] = list(whole)
            for text, (_, theirs) in zip(texts, pairs, strict=True):
                place = lists[1][theirs].places.get(text)
                axes[theirs] = () if place is None else (place,)
            numbers = [target.segments.number(places) for places in product(*axes)]
            found.update(numbers)
            missing += [] if numbers else [SEPARATOR.join(texts)]
        return frozenset(found), tuple(missing)

    return mapped


def _paired(source: tuple[str, ...], target: tuple[str, ...]) -> list[tuple[int, int]]:
    """Dimensions that speak of the same: those of one name, else the only one of each side."""
    pairs = [(source.index(name), target.index(name)) for name in source if name in target]
    mine = [place for place, name in enumerate(source) if name not in target]
    theirs = [place for place, name in enumerate(target) if name not in source]
    return [*pairs, (mine[0], theirs[0])] if len(mine) == len(theirs) == 1 else pairs
