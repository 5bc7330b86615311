"""Keys of whole assets and of products: no dimension, and several dimensions."""

from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.errors import PartitionKeyError
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.plain_values import PlainValue
from slicewise.keys.value_texts import JOINT

SEPARATOR = "|"
_WHOLE_ORDER, _PRODUCT_ORDER = 10, 13


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
        return self._component(name).value

    def _component(self, name: str) -> PartitionKey:
        try:
            return self._parts[self._names.index(name)]
        except ValueError:
            names = ", ".join(self._names)
            raise PartitionKeyError(f"no dimension {name!r}: the dimensions are {names}") from None

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
    def time(self) -> Interval | None:
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
