"""Keys with fields: the base of people's key classes, and the stand-in for them on servers."""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from slicewise.errors import PartitionKeyError
from slicewise.keys.key_types import declared_key_class, register_base
from slicewise.keys.partition_key import PartitionKey, comparable_of, exact_of, order_of
from slicewise.keys.plain_values import PlainValue, plain_value
from slicewise.keys.value_texts import JOINT, escape

LONGEST_LABEL = 200
"""The most characters of a label; a longer result of `__str__` is cut off."""

_UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
_RECORD_ORDER = 12

RecordT = TypeVar("RecordT", bound="Record")


class _RecordContent:
    """The content of a key with fields, separate so that type checkers do not see it as a field."""

    __slots__ = ("_text", "_values")
    _text: str
    _values: tuple[PlainValue, ...]
    _type_name: str
    _names: tuple[str, ...]
    _label: str  # of stand-ins


class Record(_RecordContent, PartitionKey, built_in=True):
    """The base of key classes with fields. Frozen; equal, hashed and ordered by name and fields.

    The text joins the fields by `~`: `Position(x=1.0, y=2.5, z=-3.0)` is `1~2.5~-3`. The text of a
    field is the text of its value, so that `1` and `1.0` are equal, with `_` before a text that
    another type's value would have: `Shop("1", 1)` is `_1~1`. Inside a field, tuples are `(1~2)`,
    frozensets `{a~b}`, keys `Position(1~2.5~-3)`. All but letters, digits and `_ - . ~` is
    percent-encoded, and the characters `% ~ ( ) { }` of a text are percent-encoded twice: no two
    keys of a class share a text.
    """

    __slots__ = ()

    def __new__(cls, *args: object, **values: object) -> Self:
        """Create a key of a subclass from its fields, by position or name.

        Raises PartitionKeyError.
        """
        if not cls._names:
            raise TypeError(
                f"{cls.__name__} has no fields, so it names no partition: declare a field"
            )
        try:
            bound = cls.__signature__.bind(*args, **values)  # type: ignore[attr-defined]
        except TypeError as error:
            fields = ", ".join(cls._names)
            raise TypeError(f"{cls.__name__}({fields}): {error}") from None
        bound.apply_defaults()
        checks = cls._fields.values()  # type: ignore[attr-defined]
        arguments = bound.arguments.values()
        pairs = zip(checks, arguments, strict=True)
        checked = tuple(field.check(value, PartitionKey) for field, value in pairs)
        return _filled(object.__new__(cls), checked)

    @property
    def text(self) -> str:
        """The texts of the fields, joined by `~`."""
        return self._text

    @property
    def label(self) -> str:
        """The result of `str` for the key, in one line."""
        try:
            return one_line(str(self))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any other error would end the process that loads files
            raise PartitionKeyError(
                f"{type(self).__name__}.__str__ failed for {Record.__repr__(self)}: {error!r}"
            ) from error

    @property
    def _comparable(self) -> object:
        return self._type_name, tuple(map(comparable_of, self._values))

    @property
    def _order(self) -> tuple[Any, ...]:
        return (_RECORD_ORDER, self._type_name, tuple(map(order_of, self._values)))

    @property
    def _exact(self) -> str:
        return f"{self._type_name}({_joined(self._values)})"

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        pairs = zip(self._names, self._values, strict=True)
        return f"{self._type_name}({', '.join(f'{name}={_shown(value)}' for name, value in pairs)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return bool(self._comparable == other._comparable)

    def __hash__(self) -> int:
        return hash(self._comparable)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a partition key is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a partition key is frozen: {name} cannot be deleted")

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        cls = type(self)
        if getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls:
            return cls, self._values
        return record, (self._type_name, self._names, self._values, self.label)


register_base("record", Record)


class RecordKey(Record, built_in=True):
    """A stand-in for a key whose class is not declared in this process, as always on servers.

    The stand-in knows the name of the class, the names and values of the fields, and the label that
    the key had in the process of its class. The stand-in equals the key, with the same hash, order,
    text and label.
    """

    __slots__ = ("_label", "_names", "_type_name")

    def __new__(
        cls, type_name: str, names: Sequence[str], values: Iterable[object], label: str
    ) -> Self:
        """Create a stand-in. Raises PartitionKeyError for content that no key class could have."""
        _check_names([type_name, *names])
        checked = tuple(
            value if isinstance(value, PartitionKey) else plain_value(value) for value in values
        )
        if not names or len(names) != len(checked) or len({*names}) < len(names):
            raise PartitionKeyError(f"a {type_name} of {names} cannot be created from {checked}")
        key = object.__new__(cls)
        object.__setattr__(key, "_type_name", type_name)
        object.__setattr__(key, "_names", tuple(names))
        object.__setattr__(key, "_label", one_line(label))
        return _filled(key, checked)

    @property
    def type_name(self) -> str:
        """The name of the key's class."""
        return self._type_name

    @property
    def fields(self) -> dict[str, PlainValue]:
        """The values of the fields, by name, in order."""
        return dict(zip(self._names, self._values, strict=True))

    def __str__(self) -> str:
        return self._label

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return record, (self._type_name, self._names, self._values, self._label)


def record(type_name: str, names: Sequence[str], values: Sequence[object], label: str) -> Record:
    """Return the key of a class by its name: of the real class if this process declared the class.

    Raises PartitionKeyError.
    """
    declared_class = declared_key_class(type_name, names)
    if declared_class is not None:
        try:
            key: Record = declared_class(**dict(zip(names, values, strict=True)))
            return key
        except PartitionKeyError:
            pass  # the key comes from a former state of the class, with other types of fields
    return RecordKey(type_name, names, values, label)


class Content(NamedTuple):
    """The written form of a key with fields: the name of its class, and its fields in order."""

    type_name: str
    fields: list[tuple[str, PlainValue]]


def content(key: Record) -> Content:
    """Return the content of a key, of a known or an unknown class."""
    return Content(key._type_name, list(zip(key._names, key._values, strict=True)))


def one_line(text: str) -> str:
    """Return a label that any page and any database can hold."""
    if not text.isprintable():
        unprintable = (unicodedata.category(char) in _UNPRINTABLE for char in text)
        text = "".join(" " if bad else char for char, bad in zip(text, unprintable, strict=True))
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _filled(key: RecordT, values: tuple[PlainValue, ...]) -> RecordT:
    object.__setattr__(key, "_values", values)
    object.__setattr__(key, "_text", escape(_joined(values)))
    return key


def _shown(value: PlainValue) -> str:
    """Return the repr of a value, with frozensets in the same order in every process.

    Texts have another hash in each process, and so frozensets another order.
    """
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(map(_shown, sorted(value, key=order_of)))}}})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    return repr(value)


def _joined(values: Iterable[PlainValue]) -> str:
    return JOINT.join(map(exact_of, values))


def _check_names(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise PartitionKeyError(f"{name!r} is no name of a key class or of a field")
