"""A lazy sequence of the keys of a range of windows."""

from collections.abc import Iterator, Sequence
from typing import overload

from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.windows import LazySequence, WindowSequence


class KeySequence(LazySequence[PartitionKey]):
    """A lazy sequence of the keys of a range of windows times all segments."""

    def __init__(self, space: KeyIndex, first: int, stop: int) -> None:
        self._space, self._first, self._stop = space, first, stop
        self._windows = WindowSequence(space.windows, first, stop) if space.windows else None
        self._length = space.count(first, stop) * space.segments.count

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> PartitionKey: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PartitionKey]: ...
    def __getitem__(self, index: int | slice) -> PartitionKey | Sequence[PartitionKey]:
        if isinstance(index, slice):
            return [self[position] for position in range(self._length)[index]]
        row, segment = divmod(range(self._length)[index], self._space.segments.count)
        window = self._windows[row] if self._windows is not None else None
        return self._space.assemble(window, segment)

    def __iter__(self) -> Iterator[PartitionKey]:
        segments = range(self._space.segments.count)
        for window in self._windows if self._windows is not None else (None,):
            yield from self._space.keys(window, segments)

    def __contains__(self, key: object) -> bool:
        numbers = self._space.locate(key)
        return numbers is not None and self._first <= numbers[0] < self._stop

    def __repr__(self) -> str:
        return f"<{self._length} keys>"
