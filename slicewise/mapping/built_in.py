"""The built-in mappings (docs/internals/calendar.md, need rule 6)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.key_json import key_from_json, key_to_json
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.product_key import ProductKey
from slicewise.mapping.calendar_limits import check_within_calendar
from slicewise.mapping.last_window import last_window
from slicewise.mapping.overlap import Ranges, Span, overlapping
from slicewise.mapping.partition_mapping import Nonexistence, PartitionMapping, WindowMapping
from slicewise.mapping.relation import Bounds, matching_segments
from slicewise.partitions.definition import PartitionSet
from slicewise.partitions.key_index import WHOLE_SPACE, KeyIndex
from slicewise.partitions.nonexistent import Nonexistent
from slicewise.partitions.runtime_keys import Definition, lists_keys
from slicewise.partitions.segments import check_key_list
from slicewise.partitions.window_ranges import WindowRange
from slicewise.partitions.windows import Windows


@dataclass(frozen=True)
class Overlap(WindowMapping, kind="overlap"):
    """The default mapping: every upstream window that overlaps the downstream window.

    `nonexistent` says whether upstream windows outside the upstream's bounds are needed. With
    "need", the default, a partition that needs such a window is never materialized; with "ignore",
    the partition is materialized from the windows that exist. Both assets have time.
    """

    nonexistent: Nonexistence = "need"

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where one of the two assets has no windows."""
        super().check(downstream, upstream)
        if upstream is None or upstream.time_dimension is None:
            raise DefinitionError(
                f"{self!r} counts windows of time; {_description(upstream)} has none"
            )

    def upstream_windows(
        self, downstream: Windows, ranges: Ranges, upstream: Windows
    ) -> list[Span]:
        """Return the upstream windows that overlap the downstream windows."""
        return overlapping(downstream, ranges, upstream)

    def downstream_windows(
        self, upstream: Windows, ranges: Ranges, downstream: Windows
    ) -> list[Span]:
        """Return the downstream windows that overlap the upstream windows."""
        return overlapping(upstream, ranges, downstream)


@dataclass(frozen=True)
class Offset(WindowMapping, kind="offset"):
    """The upstream windows that overlap the downstream windows `first` to `last`, counted from the
    partition's own window.

    `Offset(-1)` lags one window, `Offset(-6, 0)` covers seven windows. Windows before the
    downstream definition's start and excluded windows count. Upstream windows outside the
    upstream's bounds are needed, or ignored with `nonexistent="ignore"`. Raises DefinitionError
    where `last` is before `first`, and where all windows lie outside the years 1 to 9999.
    """

    first: int
    last: int | None = None
    nonexistent: Nonexistence = "need"

    def __post_init__(self) -> None:
        super().__post_init__()
        for number in (self.first, self.first if self.last is None else self.last):
            if isinstance(number, bool) or not isinstance(number, int):
                raise DefinitionError(
                    f"an Offset counts windows by whole numbers, not by {number!r}"
                )
        if self.last is None:
            object.__setattr__(self, "last", self.first)
        elif self.last < self.first:
            raise DefinitionError(
                f"an Offset from {self.first} to {self.last} selects no window: the first is"
                " after the last"
            )

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where all windows counted lie outside the years 1 to 9999."""
        super().check(downstream, upstream)
        check_within_calendar(self, downstream, *self._reach)

    @property
    def _reach(self) -> tuple[int, int]:
        return self.first, self.first if self.last is None else self.last

    def upstream_windows(
        self, downstream: Windows, ranges: Ranges, upstream: Windows
    ) -> list[Span]:
        """Return the upstream windows that overlap the windows `first` to `last`."""
        first, last = self._reach
        firsts, stops = ranges
        reach = [number + first for number in firsts], [number + last for number in stops]
        return overlapping(downstream, reach, upstream)

    def downstream_windows(
        self, upstream: Windows, ranges: Ranges, downstream: Windows
    ) -> list[Span]:
        """Return the downstream windows from which an upstream window is in the range `first` to
        `last`.
        """
        first, last = self._reach
        overlaps = overlapping(upstream, ranges, downstream)
        return [(start - last, stop - first) for start, stop in overlaps]


@dataclass(frozen=True)
class All(PartitionMapping, kind="all"):
    """All upstream partitions, for every downstream partition."""

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return all upstream partitions within the bounds."""
        return _all_partitions(upstream, bounds) if chosen else PartitionSet(upstream, ())

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return all downstream partitions within the bounds."""
        return _all_partitions(downstream, bounds) if chosen else PartitionSet(downstream, ())


@dataclass(frozen=True)
class Latest(PartitionMapping, kind="latest"):
    """The last upstream partition, for every downstream partition.

    With time, that is the last window that ends by `until` and the upstream's end, with the
    segments that match the downstream segments; without time, the last key of the list.
    """

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the last upstream partition, if there is any.

        Raises UnboundedPartitionsError where time has no end.
        """
        if not chosen:
            return PartitionSet(upstream, ())
        space = _space(upstream)
        if space.windows is None:
            last = {space.segments.count - 1} if space.segments.count else ()
            return PartitionSet(upstream, [WindowRange(0, 1, frozenset(last))])
        number = last_window(space.windows, *bounds)
        mapped = matching_segments(downstream, upstream, chosen.space)
        segment_sets = (segments for _, _, segments in chosen.window_ranges)
        segments, missing = mapped(frozenset().union(*segment_sets))
        window_ranges = [] if number is None else [WindowRange(number, number + 1, segments)]
        return PartitionSet(upstream, window_ranges, Nonexistent((), missing))

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return all downstream partitions within the bounds if the last upstream partition is
        chosen, with the segments that match the chosen segments.
        """
        if not chosen:
            return PartitionSet(downstream, ())
        windows = _space(upstream).windows
        if windows is None:
            last = _space(upstream).segments.count - 1
            is_chosen = last >= 0 and _space(upstream).key(0, last) in chosen
            return (
                _all_partitions(downstream, bounds) if is_chosen else PartitionSet(downstream, ())
            )
        number = last_window(windows, *bounds)
        ranges = chosen.window_ranges
        chosen_sets = [segments for first, stop, segments in ranges if number in range(first, stop)]
        mapped = matching_segments(upstream, downstream, chosen.space)
        segments, missing = mapped(frozenset().union(*chosen_sets))
        window_range = WindowRange(*_space(downstream).between(*bounds), segments)
        return PartitionSet(downstream, [window_range], Nonexistent((), missing))


@dataclass(frozen=True, init=False, repr=False)
class Keys(PartitionMapping, kind="keys"):
    """The same upstream partitions for every downstream partition, named by key, plain value or
    key text.
    """

    keys: frozenset[PartitionKey]

    def __init__(self, keys: Iterable[object]) -> None:
        check_key_list("Keys", keys)
        try:
            object.__setattr__(self, "keys", frozenset(map(PartitionKey.of, keys)))
        except PartitionKeyError as error:
            raise DefinitionError(str(error)) from error

    def __repr__(self) -> str:
        # Sorted, since the order of a frozenset differs from process to process.
        shown = (repr(key.value) for key in sorted(self.keys))
        return f"Keys([{', '.join(shown)}])"

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where the upstream has no keys to name."""
        if upstream is None:
            raise DefinitionError("Keys needs a partitioned upstream asset; leave the mapping out")

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the partitions of the keys; keys that the definition lacks are nonexistent."""
        if not chosen:
            return PartitionSet(upstream, ())
        located_keys = {
            key: _key_in(upstream, key) for key in sorted(self.keys, key=lambda key: key.text)
        }
        missing = [key for key, location in located_keys.items() if location is None]
        spans = tuple(sorted(key for key in missing if isinstance(key, Interval)))
        texts = tuple(_as_text(key) for key in missing if not isinstance(key, Interval))
        existing = PartitionSet.of(
            upstream, [key for key in located_keys.values() if key is not None]
        )
        return PartitionSet(existing.definition, existing.window_ranges, Nonexistent(spans, texts))

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return all downstream partitions if a partition of the keys is chosen, else none."""
        located_keys = (_key_in(chosen.definition, key) for key in self.keys)
        if any(key is not None and key in chosen for key in located_keys):
            return _all_partitions(downstream, bounds)
        return PartitionSet(downstream, ())

    def _arguments(self) -> dict[str, Any]:
        return {"keys": sorted((key_to_json(key) for key in self.keys), key=repr)}

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any]) -> Self:
        mapping = cls(key_from_json(key) for key in arguments.pop("keys"))
        if arguments:
            raise TypeError(f"Keys takes no {', '.join(arguments)}")
        return mapping


def _space(definition: Definition) -> KeyIndex:
    return WHOLE_SPACE if definition is None else definition.space


def _all_partitions(definition: Definition, bounds: Bounds) -> PartitionSet:
    space = _space(definition)
    return PartitionSet(definition, [WindowRange(*space.between(*bounds), space.segments.all)])


def _description(definition: Definition) -> str:
    return "an asset that is not partitioned" if definition is None else repr(definition)


def _key_in(definition: Definition, key: PartitionKey) -> PartitionKey | None:
    """Return the key of the definition for a key, a plain value or a key text; None if the
    definition lacks the key.

    A window is compared as a window, since a window's text would name another window in another
    zone.
    """
    if definition is None or not lists_keys(definition):
        return key
    if key in definition:
        return key
    if isinstance(key, Interval | ProductKey):
        return None
    try:
        return definition.parse(_as_text(key))
    except PartitionKeyError:
        return None


def _as_text(key: PartitionKey) -> str:
    value = key.value
    if isinstance(value, PartitionKey):
        return value.text
    return value.isoformat() if isinstance(value, date) else str(value)
