"""The segments of a definition: the keys of its sequences, and their combinations, numbered."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import NoReturn

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys import SEPARATOR, PartitionKey, PlainKey, check_text
from slicewise.plain_values import readable, written
from slicewise.record_keys import Record

LONGEST_KEY = 1000
"""Characters of a key text, of a product all its parts together."""

_SURELY_SHORT = 255
_LONGEST_WINDOW = len("2013-01-01T00:00:00+00:00:00")


class SegmentList:
    """The keys of one sequence in order, found by text or by value.

    Raises DefinitionError for what cannot be a segment, and for two keys of equal text.
    """

    def __init__(self, values: Iterable[object]) -> None:
        self.keys: tuple[PartitionKey, ...] = tuple(map(_segment, values))
        self.texts = tuple(key.text for key in self.keys)
        self.places = {text: place for place, text in enumerate(self.texts)}
        if len(self.places) < len(self.texts):
            self._refuse_equal_texts()

    def _refuse_equal_texts(self) -> NoReturn:
        first: dict[str, PartitionKey] = {}
        for key in self.keys:
            other = first.setdefault(key.text, key)
            if other is not key:
                raise DefinitionError(
                    f"two keys of the sequence have the text {key.text!r}:"
                    f" {other.value!r} and {key.value!r}"
                )
        raise AssertionError("some text is that of two keys")

    def refuse_long_folders(self, name: str) -> None:
        """Raise DefinitionError for a key of which `name=value` is too long for a folder.

        `name` is the dimension's.
        """
        from slicewise.folders import refuse_long_folder  # it knows definitions, and they this

        for key in self.keys:
            # Spark's escapes take three bytes of a folder's name at most, as those in a text do.
            if 3 * len(key.text) + len(name) >= _SURELY_SHORT:
                try:
                    refuse_long_folder(name, key)
                except PartitionKeyError as error:
                    raise DefinitionError(str(error)) from None

    def __len__(self) -> int:
        return len(self.keys)

    def parse(self, text: str) -> PartitionKey:
        """Return the key of a key text. Raises PartitionKeyError where it names none."""
        check_text(text)
        place = self.places.get(text, self.places.get(written(text)))
        if place is None:
            raise PartitionKeyError(f"{readable(text)!r} is none of the {len(self)} segments")
        return self.keys[place]

    def place(self, value: object) -> int | None:
        """Return where a key or plain value stands, None where it is none of these."""
        try:
            key = PartitionKey.of(value)
        except PartitionKeyError:
            return None
        place = self.places.get(key.text)
        # Texts alone do not do: 1 and "1" have the same.
        return place if place is not None and self.keys[place] == key else None


def refuse_no_list(what: str, values: object) -> None:
    """Raise DefinitionError for what is no list of keys, such as a text or a dict."""
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
    """All combinations of some sequences, numbered in order; of no sequence, there is one."""

    def __init__(self, lists: Sequence[SegmentList]) -> None:
        self.lists = tuple(lists)
        self._sizes = [len(each) for each in lists]
        self.count = prod(self._sizes)

    @cached_property
    def all(self) -> frozenset[int]:
        """The numbers of all combinations."""
        return frozenset(range(self.count))

    def places(self, number: int) -> tuple[int, ...]:
        """Return where each sequence's key stands in it, for the combination of that number."""
        places = []
        for size in reversed(self._sizes):
            number, place = divmod(number, size)
            places.append(place)
        return tuple(reversed(places))

    def number(self, places: Iterable[int]) -> int:
        """Return the number of the combination of the keys at those places."""
        number = 0
        for size, place in zip(self._sizes, places, strict=True):
            number = number * size + place
        return number

    def locate(self, values: Sequence[object]) -> int | None:
        """Return the number of a combination of keys or plain values, None where there is none."""
        places = []
        for each, value in zip(self.lists, values, strict=True):
            if (place := each.place(value)) is None:
                return None
            places.append(place)
        return self.number(places)

    def parts(self, number: int) -> tuple[PartitionKey, ...]:
        """Return the keys that make the combination of that number."""
        places = self.places(number)
        return tuple(each.keys[place] for each, place in zip(self.lists, places, strict=True))

    def text(self, number: int) -> str:
        """Their texts, joined by `|`."""
        return SEPARATOR.join(part.text for part in self.parts(number))


def refuse_long(lists: Sequence[SegmentList], *, with_time: bool = False) -> None:
    """Raise DefinitionError if a key made of these lists' keys is longer than any may be."""
    longest = SEPARATOR.join(max(each.texts, key=len, default="") for each in lists)
    length = len(longest) + (_LONGEST_WINDOW + len(SEPARATOR)) * with_time
    if length > LONGEST_KEY:
        raise DefinitionError(
            f"a key has at most {LONGEST_KEY:,} characters, not {length:,} as {longest[:50]}… has"
        )
