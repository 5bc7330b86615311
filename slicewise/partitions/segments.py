"""The segments of a definition: the keys of its sequences, and the combinations, numbered."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import NoReturn

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.column_texts import refuse_long_folder
from slicewise.keys.partition_key import PartitionKey, PlainKey, check_text
from slicewise.keys.product_key import SEPARATOR
from slicewise.keys.record_keys import Record
from slicewise.keys.value_texts import key_text_of_readable, readable

LONGEST_KEY = 1000
"""The most characters of a key text; for a product, of all components together."""

_SURELY_SHORT = 255
_LONGEST_WINDOW = len("2013-01-01T00:00:00+00:00:00")


class SegmentList:
    """The keys of one sequence in order, found by text or by value.

    Raises DefinitionError for values that cannot be a segment, and for two keys of equal text.
    """

    def __init__(self, values: Iterable[object]) -> None:
        self.keys: tuple[PartitionKey, ...] = tuple(map(_segment, values))
        self.texts = tuple(key.text for key in self.keys)
        self.positions_by_text = {text: position for position, text in enumerate(self.texts)}
        if len(self.positions_by_text) < len(self.texts):
            self._refuse_equal_texts()

    def _refuse_equal_texts(self) -> NoReturn:
        first: dict[str, PartitionKey] = {}
        for key in self.keys:
            first_key = first.setdefault(key.text, key)
            if first_key is not key:
                raise DefinitionError(
                    f"two keys of the sequence have the text {key.text!r}:"
                    f" {first_key.value!r} and {key.value!r}"
                )
        raise AssertionError("two keys have the same text")

    def refuse_long_folders(self, name: str) -> None:
        """Raise DefinitionError for a key whose folder `name=value` would have too long a name.

        `name` is the name of the dimension.
        """
        for key in self.keys:
            # An escape, of Spark or of a key text, takes at most three bytes of a folder's name.
            if 3 * len(key.text) + len(name) >= _SURELY_SHORT:
                try:
                    refuse_long_folder(name, key)
                except PartitionKeyError as error:
                    raise DefinitionError(str(error)) from None

    def __len__(self) -> int:
        return len(self.keys)

    def parse(self, text: str) -> PartitionKey:
        """Return the key of a key text. Raises PartitionKeyError for a text that is no segment."""
        check_text(text)
        position = self.positions_by_text.get(
            text, self.positions_by_text.get(key_text_of_readable(text))
        )
        if position is None:
            raise PartitionKeyError(f"{readable(text)!r} is none of the {len(self)} segments")
        return self.keys[position]

    def position(self, value: object) -> int | None:
        """Return the position of a key or plain value, or None if the sequence does not have it."""
        try:
            key = PartitionKey.of(value)
        except PartitionKeyError:
            return None
        position = self.positions_by_text.get(key.text)
        # Equal texts are not enough: 1 and "1" have the same text.
        return position if position is not None and self.keys[position] == key else None


def check_key_list(what: str, values: object) -> None:
    """Raise DefinitionError for a value that is not a list of keys, such as a text or a dict."""
    if isinstance(values, str | Mapping | PartitionKey) or not isinstance(values, Iterable):
        shown = f"the text {values!r}" if isinstance(values, str) else repr(values)
        raise DefinitionError(f"{what} takes a list of keys, not {shown}")


def _segment(value: object) -> PartitionKey:
    try:
        key = PartitionKey.of(value)
    except PartitionKeyError as error:
        raise DefinitionError(str(error)) from error
    if not isinstance(key, PlainKey | Record):
        raise DefinitionError(
            f"{value!r} is no segment: use a plain value, or a key class with a field that holds it"
        )
    return key


class Segments:
    """All combinations of some sequences, numbered in order; without sequences, one combination."""

    def __init__(self, lists: Sequence[SegmentList]) -> None:
        self.lists = tuple(lists)
        self._sizes = [len(sequence) for sequence in lists]
        self.count = prod(self._sizes)

    @cached_property
    def all(self) -> frozenset[int]:
        """The numbers of all combinations."""
        return frozenset(range(self.count))

    def positions(self, number: int) -> tuple[int, ...]:
        """Return the positions of the keys in their sequences, for the combination's number."""
        positions = []
        for size in reversed(self._sizes):
            number, position = divmod(number, size)
            positions.append(position)
        return tuple(reversed(positions))

    def number(self, positions: Iterable[int]) -> int:
        """Return the number of the combination of the keys at those positions."""
        number = 0
        for size, position in zip(self._sizes, positions, strict=True):
            number = number * size + position
        return number

    def locate(self, values: Sequence[object]) -> int | None:
        """Return the number of a combination of keys or plain values, or None if there is none."""
        positions = []
        for sequence, value in zip(self.lists, values, strict=True):
            if (position := sequence.position(value)) is None:
                return None
            positions.append(position)
        return self.number(positions)

    def components(self, number: int) -> tuple[PartitionKey, ...]:
        """Return the keys that make the combination of that number."""
        positions = self.positions(number)
        return tuple(
            sequence.keys[position]
            for sequence, position in zip(self.lists, positions, strict=True)
        )

    def text(self, number: int) -> str:
        """Return the texts of the combination's keys, joined by `|`."""
        return SEPARATOR.join(component.text for component in self.components(number))


def refuse_long(lists: Sequence[SegmentList], *, with_time: bool = False) -> None:
    """Raise DefinitionError if the longest key made of these lists' keys is longer than allowed."""
    longest = SEPARATOR.join(max(sequence.texts, key=len, default="") for sequence in lists)
    length = len(longest) + (_LONGEST_WINDOW + len(SEPARATOR)) * with_time
    if length > LONGEST_KEY:
        raise DefinitionError(
            f"a key has at most {LONGEST_KEY:,} characters, not {length:,} as {longest[:50]}… has"
        )
