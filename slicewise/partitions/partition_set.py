"""Sets of partitions of one definition that stay small if the keys are contiguous."""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

from slicewise.errors import PartitionKeyError
from slicewise.keys.intervals import make_interval
from slicewise.keys.partition_key import Interval
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.key_index import WHOLE_SPACE, KeyIndex
from slicewise.partitions.nonexistent import Nonexistent, classify_nonexistent
from slicewise.partitions.runtime_keys import is_runtime, with_keys
from slicewise.partitions.window_ranges import Pick, WindowRange, combined, disjoint, merged
from slicewise.partitions.windows import WindowSequence


class PartitionRange(NamedTuple):
    """Adjacent windows (None without a time dimension) that all have the same segment texts."""

    first: Interval | None
    last: Interval | None
    segments: tuple[str, ...]


class PartitionSet(Collection[Any]):
    """Some partitions of one definition (None: the single partition of an unpartitioned asset).

    Ordered by window start, then segment. Supports `len`, `in`, iteration, `|`, `&`, `-`. Created
    by `definition.select`, by mappings, and by `PartitionSet.of`. Sets of one `PartitionAtRuntime`
    combine and compare by their keys, even if the snapshots of their definitions hold different
    keys.

    For a set that a mapping created, `nonexistent` names the partitions that the mapping reaches
    and the definition does not have. Two kinds exist: `excluded` partitions, which `exclude=` takes
    out and no partition needs; and partitions outside the definition's bounds or of unknown
    segments. `blocking` names the second kind, as far as needed: a mapping with
    `nonexistent="ignore"` does not need windows outside the bounds.
    """

    definition: PartitionDefinition | None
    space: KeyIndex
    slabs: tuple[WindowRange, ...]
    nonexistent: Nonexistent
    excluded: Nonexistent
    blocking: Nonexistent

    def __init__(
        self,
        definition: PartitionDefinition | None,
        slabs: Iterable[WindowRange],
        nonexistent: Nonexistent | None = None,
        excluded: Nonexistent | None = None,
        blocking: Nonexistent | None = None,
    ) -> None:
        definition = with_keys(definition, ())
        space = WHOLE_SPACE if definition is None else definition.space
        if excluded is None or blocking is None:
            nonexistent, excluded, blocking = classify_nonexistent(
                space, nonexistent or Nonexistent()
            )
        vars(self).update(
            definition=definition,
            space=space,
            slabs=tuple(merged(space, disjoint(list(slabs)))),
            nonexistent=nonexistent or Nonexistent(),
            excluded=excluded,
            blocking=blocking,
        )

    @classmethod
    def of(cls, definition: PartitionDefinition | None, keys: Iterable[object]) -> "PartitionSet":
        """Return the set of the given keys. Raises PartitionKeyError for a key that the definition
        does not have.

        A `PartitionAtRuntime` without a snapshot accepts any key.
        """
        keys = list(keys)
        definition = with_keys(definition, keys)
        space = WHOLE_SPACE if definition is None else definition.space
        rows: dict[int, set[int]] = {}
        for key in keys:
            number, segment = space.numbers(key)
            rows.setdefault(number, set()).add(segment)
        slabs = (
            WindowRange(number, number + 1, frozenset(rows[number])) for number in sorted(rows)
        )
        return cls(definition, slabs)

    @property
    def needs_none(self) -> bool:
        """Whether a mapping reached partitions and none of these partitions is needed."""
        return not self and bool(self.nonexistent) and not self.blocking

    def __len__(self) -> int:
        return sum(
            self.space.count(slab.first, slab.stop) * len(slab.segments) for slab in self.slabs
        )

    def __bool__(self) -> bool:
        return bool(self.slabs)

    def __iter__(self) -> Iterator[Any]:
        for slab in self.slabs:
            segments = sorted(slab.segments)
            for window in self.windows(slab):
                yield from self.space.keys(window, segments)

    def __contains__(self, key: object) -> bool:
        numbers = self.space.locate(key)
        if numbers is None:
            return False
        number, segment = numbers
        position = bisect_right(self.slabs, (number, math.inf)) - 1
        if position < 0:
            return False
        slab = self.slabs[position]
        return number < slab.stop and segment in slab.segments

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> "PartitionSet": ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return the key at a position, or the set of the keys from one position up to another.

        Raises IndexError beyond the last key, ValueError for a slice with a step.
        """
        if isinstance(place, int):
            position = range(len(self))[place]
            return next(iter(self[position : position + 1]))
        positions = range(len(self))[place]
        if positions.step != 1:
            raise ValueError("a set of partitions is sliced without a step")
        return PartitionSet(self.definition, self._cut(positions.start, positions.stop))

    def _cut(self, start: int, stop: int) -> Iterator[WindowRange]:
        for slab in self.slabs:
            windows, segments = self.windows(slab), sorted(slab.segments)
            size = len(windows) * len(segments)
            if start < size and stop > 0:
                yield from self._cut_slab(windows, segments, max(start, 0), min(stop, size))
            start, stop = start - size, stop - size

    def _cut_slab(
        self, windows: Sequence[Interval | None], segments: list[int], start: int, stop: int
    ) -> Iterator[WindowRange]:
        """Yield the given positions of a slab: whole windows, and partial windows at either end."""

        def slab(first: int, last: int, segment_start: int, segment_stop: int) -> WindowRange:
            numbers = [self._number(windows[row]) for row in (first, last)]
            return WindowRange(
                numbers[0], numbers[1] + 1, frozenset(segments[segment_start:segment_stop])
            )

        width = len(segments)
        (top, low), (bottom, high) = divmod(start, width), divmod(stop, width)
        if top == bottom:
            yield slab(top, top, low, high)
            return
        if low:
            yield slab(top, top, low, width)
            top += 1
        if top < bottom:
            yield slab(top, bottom - 1, 0, width)
        if high:
            yield slab(bottom, bottom, 0, high)

    def _number(self, window: Interval | None) -> int:
        return 0 if window is None else self.space.time.number_at(window.first_second)

    def windows(self, slab: WindowRange) -> Sequence[Interval | None]:
        """Return the windows of a slab; one None without a time dimension."""
        windows = self.space.windows
        return (None,) if windows is None else WindowSequence(windows, slab.first, slab.stop)

    @property
    def ranges(self) -> tuple[PartitionRange, ...]:
        """The partitions as the fewest ranges, in order; excluded windows do not break a range."""
        return tuple(
            PartitionRange(
                self._window(slab.first),
                self._window(slab.stop - 1),
                tuple(self.space.segments.text(segment) for segment in sorted(slab.segments)),
            )
            for slab in self.slabs
        )

    def _window(self, number: int) -> Interval | None:
        return self.space.windows.window(number) if self.space.windows else None

    @property
    def hull(self) -> Interval | None:
        """The span from the first window's start to the last window's end; None without windows."""
        windows = self.space.windows
        if windows is None or not self.slabs:
            return None
        start, stop = self.slabs[0].first, self.slabs[-1].stop
        return make_interval(windows.ticks.tick(start), windows.ticks.tick(stop), windows.zone)

    @cached_property
    def text(self) -> str:
        """The set as a selection, which `select` reads back; the empty set has the empty text."""
        from slicewise.partitions.selection_text import selection_text

        return selection_text(self)

    def __or__(self, other: "PartitionSet") -> "PartitionSet":
        if self._stays(other):
            return self
        return self._with(
            other, lambda left_segments, right_segments: left_segments | right_segments
        )

    def __and__(self, other: "PartitionSet") -> "PartitionSet":
        return self._with(
            other, lambda left_segments, right_segments: left_segments & right_segments
        )

    def __sub__(self, other: "PartitionSet") -> "PartitionSet":
        if self._stays(other):
            return self
        return self._with(
            other, lambda left_segments, right_segments: left_segments - right_segments
        )

    def _stays(self, other_set: object) -> bool:
        """Return whether combining this set with the other set, by `|` or `-`, changes nothing.

        A set with `nonexistent` changes, because combined sets have no `nonexistent`.
        """
        return (
            isinstance(other_set, PartitionSet)
            and not other_set.slabs
            and not self.nonexistent
            and self.definition == other_set.definition
        )

    def _with(
        self,
        other_set: "PartitionSet",
        pick: Pick,
    ) -> "PartitionSet":
        if not isinstance(other_set, PartitionSet):
            return NotImplemented
        if self.definition != other_set.definition:
            raise PartitionKeyError("sets of different partition definitions cannot be combined")
        left_set, right_set = self._alike(other_set)
        return PartitionSet(left_set.definition, combined(left_set.slabs, right_set.slabs, pick))

    def _alike(self, other_set: "PartitionSet") -> "tuple[PartitionSet, PartitionSet]":
        """Return both sets with equally numbered keys.

        Snapshots may list the keys in different orders.
        """
        definition, other_definition = self.definition, other_set.definition
        if not is_runtime(definition) or not is_runtime(other_definition):
            return self, other_set
        if definition.values.texts == other_definition.values.texts:
            return self, other_set
        combined_definition = definition.known(
            (*definition.values.keys, *other_definition.values.keys)
        )
        return PartitionSet.of(combined_definition, self), PartitionSet.of(
            combined_definition, other_set
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSet):
            return NotImplemented
        if self.definition != other.definition:
            return False
        if is_runtime(self.definition):
            return set(self) == set(other)
        return self.slabs == other.slabs

    def __hash__(self) -> int:
        numbered = frozenset(self) if is_runtime(self.definition) else self.slabs
        return hash((self.definition, numbered))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a set of partitions is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a set of partitions is frozen: {name} stays")

    def __reduce__(self) -> tuple[object, ...]:
        outside_sets = self.nonexistent, self.excluded, self.blocking
        return PartitionSet, (self.definition, self.slabs, *outside_sets)

    def __repr__(self) -> str:
        shown = self.text if len(self.slabs) <= 8 else f"{len(self.slabs)} ranges"
        return f"<PartitionSet of {len(self)}: {shown}>"
