"""Partition keys: values that name one partition, and their texts."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import total_ordering
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from slicewise.errors import PartitionKeyError

if TYPE_CHECKING:
    from slicewise.intervals import Interval

PlainValue = Any  # int, float, str, bool, date, …, tuples and frozensets: checked at run time
SEPARATOR = "|"


class PartitionKey:
    """Names one partition. Two keys of one definition are equal exactly when their texts are."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The key text: unique within a definition, safe in a URL, a folder and a selection."""
        raise NotImplementedError

    @property
    def value(self) -> PlainValue:
        """What a person's code is handed: the plain value, where one was wrapped."""
        return self

    @property
    def time(self) -> "Interval | None":
        """The Interval in the key, if there is one."""
        return None

    @property
    def segment(self) -> str:
        """Texts of what is not time, joined by `|`; empty where there is nothing else."""
        return self.text

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def of(value: object) -> "PartitionKey":
        """The key of a plain value; a key stays as it is. Raises PartitionKeyError."""
        return value if isinstance(value, PartitionKey) else PlainKey(value)


@total_ordering
class PlainKey(PartitionKey):
    """A wrapped plain value. Equal to, and hashed like, the value: 1, 1.0 and True are one key."""

    __slots__ = ("_text", "_value")
    _text: str
    _value: PlainValue

    def __init__(self, value: PlainValue) -> None:
        self._text = escape(plain_text(value))
        if not self._text:
            raise PartitionKeyError("the empty text is no partition key")
        self._value = value

    @property
    def text(self) -> str:
        """The value as text, percent-encoded."""
        return self._text

    @property
    def value(self) -> PlainValue:
        """The plain value."""
        return self._value

    def __repr__(self) -> str:
        return f"PartitionKey.of({self._value!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainKey):
            return bool(self._value == other._value)
        return bool(self._value == other)

    def __lt__(self, other: object) -> bool:
        return bool(self._value < (other._value if isinstance(other, PlainKey) else other))

    def __hash__(self) -> int:
        return hash(self._value)


class WholeKey(PartitionKey):
    """The one key of an asset that is not partitioned; its text is empty. Use `WHOLE`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Empty."""
        return ""

    def __repr__(self) -> str:
        return "WHOLE"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WholeKey)

    def __hash__(self) -> int:
        return hash(WholeKey)


WHOLE = WholeKey()


class ProductKey(PartitionKey):
    """One key for each dimension of a product, in order, found by the dimension's name."""

    __slots__ = ("_names", "parts")
    parts: tuple[PartitionKey, ...]
    _names: tuple[str, ...]

    def __init__(self, names: Iterable[str], parts: Iterable[object]) -> None:
        self._names = tuple(names)
        self.parts = tuple(PartitionKey.of(part) for part in parts)
        if len(self._names) != len(self.parts):
            raise PartitionKeyError(f"a key of {self._names} needs {len(self._names)} parts")

    @classmethod
    def of_parts(cls, names: tuple[str, ...], parts: tuple[PartitionKey, ...]) -> "ProductKey":
        """The key of parts that are keys already, unchecked: listing makes a million of them."""
        key = cls.__new__(cls)
        key._names, key.parts = names, parts
        return key

    def __getitem__(self, name: str) -> PlainValue:
        """The Interval or plain value in that dimension."""
        return self._part(name).value

    def _part(self, name: str) -> PartitionKey:
        try:
            return self.parts[self._names.index(name)]
        except ValueError:
            names = ", ".join(self._names)
            raise PartitionKeyError(f"no dimension {name!r}: there are {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return self._names

    @property
    def time(self) -> "Interval | None":
        """The Interval in the dimension of time, if there is one."""
        return next((part.time for part in self.parts if part.time is not None), None)

    @property
    def segment(self) -> str:
        """Texts of the other dimensions' keys, joined by `|`."""
        return SEPARATOR.join(part.text for part in self.parts if part.time is None)

    @property
    def text(self) -> str:
        """Texts of the dimensions' keys, joined by `|`."""
        return SEPARATOR.join(part.text for part in self.parts)

    def __repr__(self) -> str:
        pairs = zip(self._names, self.parts, strict=True)
        return f"ProductKey({', '.join(f'{name}={part}' for name, part in pairs)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProductKey):
            return NotImplemented
        return self.parts == other.parts and self._names == other._names

    def __lt__(self, other: "ProductKey") -> bool:
        return self.parts < other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def escape(text: str) -> str:
    """Percent-encode all but letters, digits, `_ - . ~`; a doubled dot would read as a range."""
    return quote(text, safe="").replace("..", ".%2E")


def plain_text(value: PlainValue) -> str:
    """Equal values have equal texts. Raises PartitionKeyError for what cannot be a key."""
    match value:
        case str():
            return value
        case bool() | int() | float() | Decimal():
            return _number_text(value)
        case datetime():
            if value.tzinfo is None:
                return value.isoformat()
            return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"PT{_number_text(Decimal(value // timedelta(microseconds=1)) / 1_000_000)}S"
        case UUID():
            return str(value)
        case tuple():
            return f"({','.join(escape(plain_text(item)) for item in value)})"
        case frozenset():
            return f"{{{','.join(sorted(escape(plain_text(item)) for item in value))}}}"
    hint = ": use a PartitionKey" if isinstance(value, dict) else ""
    raise PartitionKeyError(f"{value!r} ({type(value).__name__}) cannot be a partition key{hint}")


def type_group(value: PlainValue) -> str:
    """A name that values share if they can be equal: with the text it tells 1 from "1"."""
    if isinstance(value, bool | int | float | Decimal):
        return "number"
    return type(value).__name__


def _number_text(value: bool | int | float | Decimal) -> str:
    if value != value:
        raise PartitionKeyError("NaN cannot be a partition key: it does not equal itself")
    if value in (float("inf"), float("-inf")):
        return str(float(value))
    if value == int(value):
        return str(int(value))
    # A float and a Decimal of equal value are one key: the float's text serves both.
    return repr(float(value)) if value == float(value) else format(Decimal(value).normalize(), "f")
