"""Partition keys: values that name one partition, and the texts of keys."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from slicewise.errors import PartitionKeyError
from slicewise.keys.key_types import PartitionKeyType
from slicewise.keys.plain_values import (
    JOINT,
    PlainValue,
    comparable,
    escape,
    exact_text,
    order,
    plain_text,
    plain_value,
)

if TYPE_CHECKING:
    from slicewise.keys.intervals import Interval

SEPARATOR = "|"
_WHOLE_ORDER, _PRODUCT_ORDER = 10, 13


class PartitionKey(metaclass=PartitionKeyType):
    """The name of one partition (AIP-76, "Rich Partition Key").

    Keys of one definition are equal exactly when the texts are equal. Derive a class to give keys
    fields: annotate the fields, and add `__str__` for the label, which is shown to people:

        class Position(PartitionKey):
            x: float
            y: float

            def __str__(self) -> str:
                return f"({self.x}, {self.y})"

    Fields hold plain values or keys, and define the constructor, equality, order and the key text.
    Raises DefinitionError for a class that says how keys are made, compared or stored, and, when a
    key is made, PartitionKeyError for a value that the field cannot hold.
    """

    __slots__ = ()

    @property
    def text(self) -> str:
        """The key text: unique within a definition, safe in a URL, a folder and a selection."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The text that is shown to people: the key text, unless the class has a better text."""
        return self.text

    @property
    def value(self) -> PlainValue:
        """The value for people's code: the plain value of a key that wraps one, else the key."""
        return self

    @property
    def time(self) -> "Interval | None":
        """The Interval in the key, if there is one."""
        return None

    @property
    def segment(self) -> str:
        """The texts of the dimensions other than time, joined by `|`; empty without such a text."""
        return self.text

    @property
    def _order(self) -> tuple[Any, ...]:
        """A tuple by which keys of all kinds are sorted."""
        raise NotImplementedError

    @property
    def _exact(self) -> str:
        """A text that only equal keys have, across all classes."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: Any) -> bool:
        return self._order < PartitionKey.of(other)._order

    def __le__(self, other: Any) -> bool:
        return self._order <= PartitionKey.of(other)._order

    def __gt__(self, other: Any) -> bool:
        return self._order > PartitionKey.of(other)._order

    def __ge__(self, other: Any) -> bool:
        return self._order >= PartitionKey.of(other)._order

    @staticmethod
    def of(value: object) -> "PartitionKey":
        """Return the key of a plain value; a key is returned unchanged.

        Plain values are str, bool, int, float, Decimal, date, datetime, time, timedelta, UUID, and
        tuples and frozensets of these. Raises PartitionKeyError for other values, NaN, and
        unprintable texts.
        """
        return value if isinstance(value, PartitionKey) else PlainKey(value)


class PlainKey(PartitionKey, built_in=True):
    """The key of a plain value. A key equals, and is hashed like, the value: 1, 1.0 and True are
    one key.

    Keys are ordered within a kind (numbers, texts, dates, …), and kind by kind.
    """

    __slots__ = ("_text", "_value")

    def __init__(self, value: PlainValue) -> None:
        self._value: PlainValue = plain_value(value)
        self._text = escape(plain_text(self._value))
        if not self._text:
            raise PartitionKeyError("the empty text is no partition key")

    @property
    def text(self) -> str:
        """The value as text, percent-encoded; items of tuples and frozensets joined by `~`."""
        return self._text

    @property
    def label(self) -> str:
        """The value as text."""
        return unquote(self._text)

    @property
    def value(self) -> PlainValue:
        """The plain value."""
        return self._value

    @property
    def _order(self) -> tuple[Any, ...]:
        return order(self._value)

    @property
    def _exact(self) -> str:
        return exact_text(self._value)

    def __repr__(self) -> str:
        return f"PartitionKey.of({self._value!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainKey):
            return bool(comparable(self._value) == comparable(other._value))
        if isinstance(other, PartitionKey):
            return NotImplemented
        return bool(comparable(self._value) == comparable(other))

    def __hash__(self) -> int:
        return hash(comparable(self._value))


class WholeKey(PartitionKey, built_in=True):
    """The one key of an asset that is not partitioned, with the empty text. Use `WHOLE`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The empty text."""
        return ""

    @property
    def _order(self) -> tuple[Any, ...]:
        return (_WHOLE_ORDER,)

    @property
    def _exact(self) -> str:
        return "@whole()"

    def __repr__(self) -> str:
        return "WHOLE"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WholeKey)

    def __hash__(self) -> int:
        return hash(WholeKey)


WHOLE = WholeKey()


class ProductKey(PartitionKey, built_in=True):
    """One key for each dimension of a product, in order, found by the dimension's name."""

    __slots__ = ("_names", "_parts")

    def __init__(self, names: Iterable[str], parts: Iterable[object]) -> None:
        self._names = tuple(names)
        self._parts: tuple[PartitionKey, ...] = tuple(PartitionKey.of(key) for key in parts)
        if len(self._names) != len(self._parts):
            raise PartitionKeyError(f"a key of {self._names} needs {len(self._names)} parts")

    @classmethod
    def of_parts(cls, names: tuple[str, ...], parts: tuple[PartitionKey, ...]) -> "ProductKey":
        """Return the key of `parts` that are keys already, unchecked, since a listing makes a
        million such keys.
        """
        key = cls.__new__(cls)
        key._names, key._parts = names, parts
        return key

    def __getitem__(self, name: str) -> PlainValue:
        """Return the Interval or plain value in the dimension."""
        return self._part(name).value

    def _part(self, name: str) -> PartitionKey:
        try:
            return self._parts[self._names.index(name)]
        except ValueError:
            names = ", ".join(self._names)
            raise PartitionKeyError(f"no dimension {name!r}: there are {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def parts(self) -> tuple[PartitionKey, ...]:
        """The keys of the dimensions, in order."""
        return self._parts

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return self._names

    @property
    def time(self) -> "Interval | None":
        """The Interval in the dimension of time, if there is one."""
        return next((key.time for key in self._parts if key.time is not None), None)

    @property
    def segment(self) -> str:
        """The texts of the other dimensions' keys, joined by `|`."""
        return SEPARATOR.join(key.text for key in self._parts if key.time is None)

    @property
    def text(self) -> str:
        """The texts of the dimensions' keys, joined by `|`."""
        return SEPARATOR.join(key.text for key in self._parts)

    @property
    def label(self) -> str:
        """The labels of the dimensions' keys, joined by ` | `."""
        return f" {SEPARATOR} ".join(key.label for key in self._parts)

    @property
    def _order(self) -> tuple[Any, ...]:
        return (_PRODUCT_ORDER, tuple(key._order for key in self._parts), self._names)

    @property
    def _exact(self) -> str:
        pairs = zip(self._names, self._parts, strict=True)
        return f"@product({JOINT.join(f'{name}{JOINT}{key._exact}' for name, key in pairs)})"

    def __repr__(self) -> str:
        pairs = zip(self._names, self._parts, strict=True)
        return f"ProductKey({', '.join(f'{name}={key}' for name, key in pairs)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProductKey):
            return NotImplemented
        return self._parts == other._parts and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._parts)


def check_text(text: object) -> None:
    """Raise PartitionKeyError for a value that is no text, where a key text is read."""
    if not isinstance(text, str):
        raise PartitionKeyError(f"a key text is a text, not {text!r}")


def comparable_of(value: object) -> object:
    """Return the object that stands for a key or plain value in equality and hash."""
    return value if isinstance(value, PartitionKey) else comparable(value)


def order_of(value: object) -> tuple[Any, ...]:
    """Return a tuple by which keys and plain values of all types can be sorted."""
    return value._order if isinstance(value, PartitionKey) else order(value)


def exact_of(value: object) -> str:
    """Return a text that only equal keys and plain values share, across all types."""
    return value._exact if isinstance(value, PartitionKey) else exact_text(value)
