"""Sets of partitions of one definition that stay small where keys are contiguous."""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError
from slicewise.intervals import Interval, make_interval
from slicewise.nonexistent import Nonexistent, classified
from slicewise.slabs import Pick, Slab, combined, disjoint, merged
from slicewise.snapshots import is_runtime, with_keys
from slicewise.space import WHOLE_SPACE, Space
from slicewise.windows import WindowSequence


class PartitionRange(NamedTuple):
    """Neighbouring windows (None without a time dimension), each with the same segments' texts."""

    first: Interval | None
    last: Interval | None
    segments: tuple[str, ...]


class PartitionSet(Collection[Any]):
    """Some partitions of one definition (None: the one partition of what is not partitioned).

    Ordered by window start, then segment. Supports `len`, `in`, iteration, `|`, `&`, `-`. Made by
    `definition.select`, by mappings, and by `PartitionSet.of`. Sets of one `PartitionAtRuntime`
    combine and compare by their keys, whatever else the snapshots of their definitions hold.

    Of a set that a mapping made, `nonexistent` names the partitions that the mapping reaches and
    the definition does not have. They are of two kinds: `excluded` ones, which `exclude=` takes out
    and no partition needs, and those outside the definition's bounds, and segments that it lacks.
    `blocking` names the second kind, as far as they are needed: a mapping with
    `nonexistent="ignore"` does without windows outside the bounds.
    """

    definition: PartitionDefinition | None
    space: Space
    slabs: tuple[Slab, ...]
    nonexistent: Nonexistent
    excluded: Nonexistent
    blocking: Nonexistent

    def __init__(
        self,
        definition: PartitionDefinition | None,
        slabs: Iterable[Slab],
        nonexistent: Nonexistent | None = None,
        excluded: Nonexistent | None = None,
        blocking: Nonexistent | None = None,
    ) -> None:
        definition = with_keys(definition, ())
        space = WHOLE_SPACE if definition is None else definition.space
        if excluded is None or blocking is None:
            nonexistent, excluded, blocking = classified(space, nonexistent or Nonexistent())
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
        """The set of those keys. Raises PartitionKeyError for what is no key of the definition.

        A `PartitionAtRuntime` without a snapshot takes any.
        """
        keys = list(keys)
        definition = with_keys(definition, keys)
        space = WHOLE_SPACE if definition is None else definition.space
        rows: dict[int, set[int]] = {}
        for key in keys:
            number, segment = space.numbers(key)
            rows.setdefault(number, set()).add(segment)
        slabs = (Slab(number, number + 1, frozenset(rows[number])) for number in sorted(rows))
        return cls(definition, slabs)

    @property
    def needs_none(self) -> bool:
        """Whether a mapping reached partitions here and none of them is needed."""
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
        place = bisect_right(self.slabs, (number, math.inf)) - 1
        if place < 0:
            return False
        slab = self.slabs[place]
        return number < slab.stop and segment in slab.segments

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> "PartitionSet": ...
    def __getitem__(self, place: int | slice) -> Any:
        """The key at a place, or the set of the keys from one place up to another.

        Raises IndexError beyond the last key, ValueError for a slice with a step.
        """
        if isinstance(place, int):
            wanted = range(len(self))[place]
            return next(iter(self[wanted : wanted + 1]))
        places = range(len(self))[place]
        if places.step != 1:
            raise ValueError("a set of partitions is sliced without a step")
        return PartitionSet(self.definition, self._cut(places.start, places.stop))

    def _cut(self, start: int, stop: int) -> Iterator[Slab]:
        for slab in self.slabs:
            windows, segments = self.windows(slab), sorted(slab.segments)
            size = len(windows) * len(segments)
            if start < size and stop > 0:
                yield from self._cut_slab(windows, segments, max(start, 0), min(stop, size))
            start, stop = start - size, stop - size

    def _cut_slab(
        self, windows: Sequence[Interval | None], segments: list[int], start: int, stop: int
    ) -> Iterator[Slab]:
        """Places of one slab: whole windows, and those at either end with some segments only."""

        def slab(first: int, last: int, low: int, high: int) -> Slab:
            numbers = [self._number(windows[row]) for row in (first, last)]
            return Slab(numbers[0], numbers[1] + 1, frozenset(segments[low:high]))

        width = len(segments)
        (top, left), (bottom, right) = divmod(start, width), divmod(stop, width)
        if top == bottom:
            yield slab(top, top, left, right)
            return
        if left:
            yield slab(top, top, left, width)
            top += 1
        if top < bottom:
            yield slab(top, bottom - 1, 0, width)
        if right:
            yield slab(bottom, bottom, 0, right)

    def _number(self, window: Interval | None) -> int:
        return 0 if window is None else self.space.time.number_at(window.first_second)

    def windows(self, slab: Slab) -> Sequence[Interval | None]:
        """Return the windows of a slab; one None without a time dimension."""
        windows = self.space.windows
        return (None,) if windows is None else WindowSequence(windows, slab.first, slab.stop)

    @property
    def ranges(self) -> tuple[PartitionRange, ...]:
        """The partitions as the fewest ranges, in order; excluded windows do not break one."""
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
        """From the start of the first window to the end of the last; None without any."""
        windows = self.space.windows
        if windows is None or not self.slabs:
            return None
        start, stop = self.slabs[0].first, self.slabs[-1].stop
        return make_interval(windows.ticks.tick(start), windows.ticks.tick(stop), windows.zone)

    @cached_property
    def text(self) -> str:
        """The set as a selection, which `select` reads back; the empty set has the empty text."""
        from slicewise.selection_text import selection_text

        return selection_text(self)

    def __or__(self, other: "PartitionSet") -> "PartitionSet":
        if self._stays(other):
            return self
        return self._with(other, lambda left, right: left | right)

    def __and__(self, other: "PartitionSet") -> "PartitionSet":
        return self._with(other, lambda left, right: left & right)

    def __sub__(self, other: "PartitionSet") -> "PartitionSet":
        if self._stays(other):
            return self
        return self._with(other, lambda left, right: left - right)

    def _stays(self, other: object) -> bool:
        """Whether nothing is added or taken away; what a mapping says beside goes with either."""
        return (
            isinstance(other, PartitionSet)
            and not other.slabs
            and not self.nonexistent
            and self.definition == other.definition
        )

    def _with(
        self,
        other: "PartitionSet",
        pick: Pick,
    ) -> "PartitionSet":
        if not isinstance(other, PartitionSet):
            return NotImplemented
        if self.definition != other.definition:
            raise PartitionKeyError("sets of different partition definitions cannot be combined")
        one, two = self._alike(other)
        return PartitionSet(one.definition, combined(one.slabs, two.slabs, pick))

    def _alike(self, other: "PartitionSet") -> "tuple[PartitionSet, PartitionSet]":
        """Both sets with their keys numbered alike: snapshots may list them in different orders."""
        definition, theirs = self.definition, other.definition
        if not is_runtime(definition) or not is_runtime(theirs):
            return self, other
        if definition.values.texts == theirs.values.texts:
            return self, other
        both = definition.known((*definition.values.keys, *theirs.values.keys))
        return PartitionSet.of(both, self), PartitionSet.of(both, other)

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
        beside = self.nonexistent, self.excluded, self.blocking
        return PartitionSet, (self.definition, self.slabs, *beside)

    def __repr__(self) -> str:
        shown = self.text if len(self.slabs) <= 8 else f"{len(self.slabs)} ranges"
        return f"<PartitionSet of {len(self)}: {shown}>"
