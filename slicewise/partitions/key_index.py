"""The space of a definition: each key as a pair of numbers, of its window and of its segments.

A definition without a time dimension has the one window number 0, a definition without sequences
the one segment number 0. Sets, selections and mappings are arithmetic on these pairs.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from slicewise.errors import PartitionKeyError
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.product_key import WHOLE, ProductKey
from slicewise.keys.window_texts import window_text
from slicewise.partitions.segments import Segments
from slicewise.partitions.windows import Bound, Windows


class KeyIndex:
    """The keys of one definition (None: the single key of an unpartitioned asset).

    `names` are the names of the dimensions in order; `time_position` is the position of the time
    dimension.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        windows: Windows | None,
        time_position: int,
        segments: Segments,
        product: bool,
    ) -> None:
        self.names, self.windows, self.segments = names, windows, segments
        self._time_position, self._product = time_position, product
        self._components = lru_cache(maxsize=65_536)(segments.components)

    def __reduce__(self) -> tuple[object, ...]:
        # Without the cached components, because a cache cannot be pickled.
        facts = (self.names, self.windows, self._time_position, self.segments, self._product)
        return KeyIndex, facts

    @property
    def segment_names(self) -> tuple[str, ...]:
        """The names of the dimensions that are not time, in order."""
        if self.windows is None:
            return self.names
        return self.names[: self._time_position] + self.names[self._time_position + 1 :]

    @property
    def time_name(self) -> str | None:
        """The name of the time dimension."""
        return self.names[self._time_position] if self.windows else None

    @property
    def time(self) -> Windows:
        """The windows of a space that has a time dimension."""
        if self.windows is None:
            raise TypeError(f"none of {self.names} is a time dimension")
        return self.windows

    def between(self, since: Bound, until: Bound) -> tuple[int, int]:
        """Return the range of numbers of the windows inside [since, until)."""
        return self.windows.between(since, until) if self.windows else (0, 1)

    def count(self, first: int, stop: int) -> int:
        """Return the number of windows in a range of numbers."""
        return self.windows.count(first, stop) if self.windows else max(0, stop - first)

    def runs(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Return a range of window numbers without excluded windows, as unbroken ranges."""
        return self.windows.runs(first, stop) if self.windows else iter([(first, stop)])

    def key(self, number: int, segment: int) -> PartitionKey:
        """Return the key of a window and a segment number."""
        return self.assemble(self.windows.window(number) if self.windows else None, segment)

    def keys(self, window: Interval | None, segments: Sequence[int]) -> Iterator[PartitionKey]:
        """Return the keys of one window, segment by segment."""
        return (self.assemble(window, segment) for segment in segments)

    def assemble(self, window: Interval | None, segment: int) -> PartitionKey:
        """Return the key that consists of a window and the segments of that number."""
        components = self._components(segment)
        if window is not None:
            if not self._product:
                return window
            components = (
                *components[: self._time_position],
                window,
                *components[self._time_position :],
            )
        if self._product:
            return ProductKey.of_parts(self.names, components)
        return components[0] if components else WHOLE

    def text(self, number: int, segment: int) -> str:
        """Return the key text of a window and a segment number."""
        return self.key(number, segment).text

    def window_text(self, number: int) -> str:
        """Return the key text of the window of that number."""
        ticks = self.time.ticks
        return window_text(ticks.tick(number), ticks.tick(number + 1), self.time.zone)

    def locate(self, key: object) -> tuple[int, int] | None:
        """Return the numbers of a key, or None if the definition does not have the key."""
        if not self._product:
            if self.windows is not None:
                if not isinstance(key, Interval):
                    return None
                number = self.windows.number_of(key.first_second, key.stop_second)
                return None if number is None else (number, 0)
            return self._at(None, (key,)) if self.names else self._whole(key)
        if not isinstance(key, ProductKey) or key.names != self.names:
            return None
        if self.windows is None:
            return self._at(None, key.parts)
        time_position = self._time_position
        return self._at(
            key.parts[time_position], (*key.parts[:time_position], *key.parts[time_position + 1 :])
        )

    def numbers(self, key: object) -> tuple[int, int]:
        """Return the numbers of a key. Raises PartitionKeyError for a key of no partition."""
        numbers = self.locate(key)
        if numbers is None:
            hint = "; a key text is read by parse" if self._is_text_of_window(key) else ""
            raise PartitionKeyError(f"{key!s} names no partition{hint}")
        return numbers

    def _is_text_of_window(self, key: object) -> bool:
        return isinstance(key, str) and (self._product or self.windows is not None)

    def _whole(self, key: object) -> tuple[int, int] | None:
        return (0, 0) if key is None or key == WHOLE else None

    def _at(self, window: object, components: Sequence[object]) -> tuple[int, int] | None:
        number: int | None = 0
        if self.windows is not None:
            if not isinstance(window, Interval):
                return None
            number = self.windows.number_of(window.first_second, window.stop_second)
        segment = self.segments.locate(components)
        return None if number is None or segment is None else (number, segment)


WHOLE_SPACE = KeyIndex((), None, 0, Segments(()), product=False)
