"""Partition keys: values that name one partition; plain values, and windows of time."""

from datetime import datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import unquote

from slicewise.calendar.zones import EPOCH, to_instant, zone, zone_name
from slicewise.errors import PartitionKeyError
from slicewise.keys.key_types import PartitionKeyType, register_base
from slicewise.keys.plain_values import PlainValue, comparable, order, plain_value
from slicewise.keys.value_texts import JOINT, escape, exact_text, plain_text
from slicewise.keys.window_texts import window_label, window_text

_INTERVAL_ORDER = 11


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


register_base("key", PartitionKey)


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


class Interval(PartitionKey, built_in=True):
    """A half-open window of time, [start, end).

    `start` and `end` are aware datetimes (any zone, whole seconds); the attributes are in UTC.
    `timezone` is for printing only: intervals of equal start and end are equal in all zones.
    Raises PartitionKeyError for naive datetimes, fractions of a second and end before start,
    DefinitionError for an unknown zone.
    """

    __slots__ = ("_first_second", "_stop_second", "_zone")

    def __init__(self, start: datetime, end: datetime, timezone: str | tzinfo = "UTC") -> None:
        for moment in (start, end):
            if not isinstance(moment, datetime) or moment.tzinfo is None or moment.microsecond:
                raise PartitionKeyError(
                    f"{moment!r} is not an aware datetime in whole seconds; a key text is read by"
                    " its definition's parse"
                )
        self._first_second, self._stop_second = to_instant(start), to_instant(end)
        self._zone = zone(zone_name(timezone))
        if self._first_second >= self._stop_second:
            raise PartitionKeyError(f"a window ends after it starts: {start} to {end}")

    @property
    def first_second(self) -> int:
        """The start of the window, in seconds since 1970-01-01T00:00Z."""
        return self._first_second

    @property
    def stop_second(self) -> int:
        """The end of the window, in seconds since 1970-01-01T00:00Z."""
        return self._stop_second

    @property
    def start(self) -> datetime:
        """The start of the window, in UTC."""
        return EPOCH + timedelta(seconds=self._first_second)

    @property
    def end(self) -> datetime:
        """The end of the window, in UTC; the end is not part of the window."""
        return EPOCH + timedelta(seconds=self._stop_second)

    @property
    def time(self) -> "Interval":
        """The window itself."""
        return self

    @property
    def segment(self) -> str:
        """The empty text: a window has no segment."""
        return ""

    @property
    def local_start(self) -> datetime:
        """The start of the window, with the offset of the window's zone at that instant."""
        return self.start.astimezone(self._zone.tzinfo_at(self._first_second))

    @property
    def local_end(self) -> datetime:
        """The end of the window, with the offset of the window's zone at that instant."""
        return self.end.astimezone(self._zone.tzinfo_at(self._stop_second))

    @property
    def duration(self) -> timedelta:
        """The elapsed time between start and end."""
        return timedelta(seconds=self._stop_second - self._first_second)

    @property
    def zone(self) -> str:
        """The name of the time zone in which the window is written."""
        return self._zone.name

    @property
    def text(self) -> str:
        """`2024-01-01` where both ends begin a local date, else `2024-11-03T01:00-04:00`."""
        return window_text(self._first_second, self._stop_second, self._zone)

    @property
    def label(self) -> str:
        """`2024-W05`, `2024-01`, `2024-Q1` or `2024` for exactly that window, else the text.

        Weeks are weeks of ISO 8601, which begin on Mondays.
        """
        return window_label(self._first_second, self._stop_second, self._zone) or self.text

    @property
    def _order(self) -> tuple[Any, ...]:
        return (_INTERVAL_ORDER, self._first_second, self._stop_second)

    @property
    def _exact(self) -> str:
        # The zone is left out, since equality ignores the zone.
        ends = (f"{end:%Y-%m-%dT%H:%M:%S}Z" for end in (self.start, self.end))
        return f"@interval({JOINT.join(ends)})"

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def __repr__(self) -> str:
        return f"Interval({self.start.isoformat()}, {self.end.isoformat()}, {self.zone!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return (self._first_second, self._stop_second) == (other._first_second, other._stop_second)

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, Interval):
            return super().__lt__(other)
        return (self._first_second, self._stop_second) < (other._first_second, other._stop_second)

    def __hash__(self) -> int:
        return hash((self._first_second, self._stop_second))

    def __reduce__(self) -> tuple[object, ...]:
        return Interval, (self.start, self.end, self.zone)


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
