"""Sets of keys of one definition that stay small if the keys are contiguous.

`PartitionSet` stands beside the class of definitions, as each of the two returns the other one; its
arithmetic is here, and knows of a definition the part that sets use.
"""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast, overload

from slicewise.errors import PartitionKeyError
from slicewise.keys.intervals import make_interval
from slicewise.keys.partition_key import Interval
from slicewise.partitions.key_index import WHOLE_SPACE, KeyIndex
from slicewise.partitions.nonexistent import Nonexistent, classify_nonexistent
from slicewise.partitions.selection_text import selection_text
from slicewise.partitions.window_ranges import Pick, WindowRange, combined, disjoint, merged
from slicewise.partitions.windows import WindowSequence


class PartitionRange(NamedTuple):
    """Adjacent windows (None without a time dimension) that all have the same segment texts."""

    first: Interval | None
    last: Interval | None
    segments: tuple[str, ...]


class NumberedKeys(Protocol):
    """The part of a partition definition that sets of keys use."""

    discovers_keys: ClassVar[bool]

    @property
    def space(self) -> KeyIndex:
        """The keys as numbers."""

    def with_keys(self, keys: Iterable[object]) -> Any:
        """Return the definition, with these keys where keys are discovered and not listed."""

    def united(self, other: Any) -> Any:
        """Return an equal definition whose numbers are those of the keys of both definitions."""


DefinitionT = TypeVar("DefinitionT", bound=NumberedKeys)


class KeySet(Collection[Any], Generic[DefinitionT]):
    """The arithmetic of `PartitionSet`: keys of one definition as ranges of windows."""

    definition: DefinitionT | None
    space: KeyIndex
    window_ranges: tuple[WindowRange, ...]
    nonexistent: Nonexistent
    excluded: Nonexistent
    blocking: Nonexistent

    def __init__(
        self,
        definition: DefinitionT | None,
        window_ranges: Iterable[WindowRange],
        nonexistent: Nonexistent | None = None,
        excluded: Nonexistent | None = None,
        blocking: Nonexistent | None = None,
    ) -> None:
        definition = None if definition is None else definition.with_keys(())
        space = WHOLE_SPACE if definition is None else definition.space
        if excluded is None or blocking is None:
            nonexistent, excluded, blocking = classify_nonexistent(
                space, nonexistent or Nonexistent()
            )
        vars(self).update(
            definition=definition,
            space=space,
            window_ranges=tuple(merged(space, disjoint(list(window_ranges)))),
            nonexistent=nonexistent or Nonexistent(),
            excluded=excluded,
            blocking=blocking,
        )

    @classmethod
    def of(cls, definition: DefinitionT | None, keys: Iterable[object]) -> Self:
        """Return the set of the given keys. Raises PartitionKeyError for a key that the definition
        does not have.

        A `PartitionAtRuntime` without a snapshot accepts any key.
        """
        keys = list(keys)
        definition = None if definition is None else definition.with_keys(keys)
        space = WHOLE_SPACE if definition is None else definition.space
        rows: dict[int, set[int]] = {}
        for key in keys:
            number, segment = space.numbers(key)
            rows.setdefault(number, set()).add(segment)
        window_ranges = (
            WindowRange(number, number + 1, frozenset(rows[number])) for number in sorted(rows)
        )
        return cls(definition, window_ranges)

    @property
    def needs_none(self) -> bool:
        """Whether a mapping reached partitions and none of these partitions is needed."""
        return not self and bool(self.nonexistent) and not self.blocking

    def __len__(self) -> int:
        return sum(
            self.space.count(first, stop) * len(segments)
            for first, stop, segments in self.window_ranges
        )

    def __bool__(self) -> bool:
        return bool(self.window_ranges)

    def __iter__(self) -> Iterator[Any]:
        for window_range in self.window_ranges:
            segments = sorted(window_range.segments)
            for window in self.windows(window_range):
                yield from self.space.keys(window, segments)

    def __contains__(self, key: object) -> bool:
        numbers = self.space.locate(key)
        if numbers is None:
            return False
        number, segment = numbers
        position = bisect_right(self.window_ranges, (number, math.inf)) - 1
        if position < 0:
            return False
        window_range = self.window_ranges[position]
        return number < window_range.stop and segment in window_range.segments

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return the key at a position, or the set of the keys from one position up to another.

        Raises IndexError beyond the last key, ValueError for a slice with a step.
        """
        if isinstance(index, int):
            position = range(len(self))[index]
            return next(iter(self[position : position + 1]))
        positions = range(len(self))[index]
        if positions.step != 1:
            raise ValueError("a set of partitions cannot be sliced with a step: leave the step out")
        return type(self)(self.definition, self._between(positions.start, positions.stop))

    def _between(self, start: int, stop: int) -> Iterator[WindowRange]:
        for window_range in self.window_ranges:
            windows, segments = self.windows(window_range), sorted(window_range.segments)
            size = len(windows) * len(segments)
            if start < size and stop > 0:
                yield from self._part_of_range(windows, segments, max(start, 0), min(stop, size))
            start, stop = start - size, stop - size

    def _part_of_range(
        self, windows: Sequence[Interval | None], segments: list[int], start: int, stop: int
    ) -> Iterator[WindowRange]:
        """Yield positions of a window range: whole windows, and partial windows at the ends."""

        def subrange(first: int, last: int, segment_start: int, segment_stop: int) -> WindowRange:
            numbers = [self._number(windows[row]) for row in (first, last)]
            return WindowRange(
                numbers[0], numbers[1] + 1, frozenset(segments[segment_start:segment_stop])
            )

        width = len(segments)
        (top, low), (bottom, high) = divmod(start, width), divmod(stop, width)
        if top == bottom:
            yield subrange(top, top, low, high)
            return
        if low:
            yield subrange(top, top, low, width)
            top += 1
        if top < bottom:
            yield subrange(top, bottom - 1, 0, width)
        if high:
            yield subrange(bottom, bottom, 0, high)

    def _number(self, window: Interval | None) -> int:
        return 0 if window is None else self.space.time.number_at(window.first_second)

    def windows(self, window_range: WindowRange) -> Sequence[Interval | None]:
        """Return the windows of a window range; one None without a time dimension."""
        windows = self.space.windows
        return (None,) if windows is None else WindowSequence(windows, *window_range[:2])

    @property
    def ranges(self) -> tuple[PartitionRange, ...]:
        """The partitions as the fewest ranges, in order; excluded windows do not break a range."""
        return tuple(
            PartitionRange(
                self._window(first),
                self._window(stop - 1),
                tuple(self.space.segments.text(segment) for segment in sorted(segments)),
            )
            for first, stop, segments in self.window_ranges
        )

    def _window(self, number: int) -> Interval | None:
        return self.space.windows.window(number) if self.space.windows else None

    @property
    def hull(self) -> Interval | None:
        """The span from the first window's start to the last window's end; None without windows."""
        windows = self.space.windows
        if windows is None or not self.window_ranges:
            return None
        start, stop = self.window_ranges[0].first, self.window_ranges[-1].stop
        return make_interval(windows.ticks.tick(start), windows.ticks.tick(stop), windows.zone)

    @cached_property
    def text(self) -> str:
        """The set as a selection, which `select` reads back; the empty set has the empty text."""
        return selection_text(self.space, self.window_ranges, key_by_key=self._discovers_keys)

    def __or__(self, other: Self) -> Self:
        if self._stays(other):
            return self
        return self._with(
            other, lambda left_segments, right_segments: left_segments | right_segments
        )

    def __and__(self, other: Self) -> Self:
        return self._with(
            other, lambda left_segments, right_segments: left_segments & right_segments
        )

    def __sub__(self, other: Self) -> Self:
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
            isinstance(other_set, KeySet)
            and not other_set.window_ranges
            and not self.nonexistent
            and self.definition == other_set.definition
        )

    def _with(self, other_set: Self, pick: Pick) -> Self:
        if not isinstance(other_set, KeySet):
            return cast("Self", NotImplemented)  # Python asks the other operand
        if self.definition != other_set.definition:
            raise PartitionKeyError("sets of different partition definitions cannot be combined")
        left_set, right_set = self._alike(other_set)
        ranges = combined(left_set.window_ranges, right_set.window_ranges, pick)
        return type(self)(left_set.definition, ranges)

    def _alike(self, other_set: Self) -> tuple[Self, Self]:
        """Return both sets with equally numbered keys.

        Snapshots may list the keys in different orders.
        """
        if self.definition is None:
            return self, other_set
        united_definition = self.definition.united(other_set.definition)
        if united_definition is self.definition:
            return self, other_set
        return self.of(united_definition, self), self.of(united_definition, other_set)

    @property
    def _discovers_keys(self) -> bool:
        return self.definition is not None and self.definition.discovers_keys

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeySet):
            return NotImplemented
        if self.definition != other.definition:
            return False
        if self._discovers_keys:
            return set(self) == set(other)
        return self.window_ranges == other.window_ranges

    def __hash__(self) -> int:
        numbered = frozenset(self) if self._discovers_keys else self.window_ranges
        return hash((self.definition, numbered))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a set of partitions is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a set of partitions is frozen: {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        outside_sets = self.nonexistent, self.excluded, self.blocking
        return type(self), (self.definition, self.window_ranges, *outside_sets)

    def __repr__(self) -> str:
        shown = self.text if len(self.window_ranges) <= 8 else f"{len(self.window_ranges)} ranges"
        return f"<PartitionSet of {len(self)}: {shown}>"
