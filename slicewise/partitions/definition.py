"""The base class of partition definitions (AIP-76, "Partition")."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

from slicewise import plugins
from slicewise.calendar.cadence import CalendarUnit
from slicewise.calendar.time_text import Moment
from slicewise.errors import DefinitionError
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.windows import Bound, LazySequence, WindowSequence

if TYPE_CHECKING:
    from slicewise.partitions.by_time import PartitionByTime
    from slicewise.partitions.partition_set import PartitionSet

Json = dict[str, Any]
# Names of unnamed dimensions: of a lone definition, and of a sequence in the list of a product.
DEFAULT_NAME = "partition"
DEFAULT_SEGMENT = "segment"


class Dimension(NamedTuple):
    """One axis of a definition: a name, and the definition of the partitions along the axis."""

    name: str
    definition: "PartitionDefinition"


class PartitionDefinition(ABC):
    """The rule that says which partitions of an asset exist.

    Definitions are frozen, hashable and comparable. Definitions are equal if only the spelling
    differs: `@daily` and `0 0 * * *`, a bound as a date or as the date's instant. Definitions with
    the same partitions by other rules, such as `@hourly` and an hour's timedelta, have equal keys
    and are not equal.
    """

    kind: ClassVar[str]
    name: str | None

    def __init_subclass__(cls, kind: str = "", **options: object) -> None:
        super().__init_subclass__(**options)
        if kind:
            cls.kind = kind
            plugins.register(plugins.PARTITIONS, kind, cls)

    # -- members that each kind of definition defines

    @property
    @abstractmethod
    def dimensions(self) -> tuple[Dimension, ...]:
        """The named axes; a lone definition is one axis, named by `name` or `partition`."""

    @cached_property
    @abstractmethod
    def space(self) -> KeyIndex:
        """The keys as numbers, with which sets and mappings compute."""

    @abstractmethod
    def to_json(self) -> Json:
        """Return the definition as JSON, in the written form."""

    @abstractmethod
    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""

    @abstractmethod
    def shape(self) -> Json | str:
        """Return the cadence, zone and alignment, without bounds, exclusions and lists of keys."""

    @classmethod
    @abstractmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self: ...

    @abstractmethod
    def parse(self, text: str) -> PartitionKey:
        """Return the key of a key text. Raises PartitionKeyError if no partition has that text."""

    # -- members that build on these

    @staticmethod
    def from_json(spec: Mapping[str, Any]) -> "PartitionDefinition":
        """Return the definition that `to_json` wrote. Raises DefinitionError for other JSON."""
        if not isinstance(spec, Mapping):
            raise DefinitionError(f"{spec!r:.200} is no JSON of a partition definition: no object")
        definition_class = plugins.find(plugins.PARTITIONS, spec.get("kind"))
        try:
            definition: PartitionDefinition = definition_class._from_json(spec)
            return definition
        except (KeyError, TypeError, AttributeError) as error:
            raise DefinitionError(f"bad JSON of a partition definition: {error!r}") from error

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the canonical JSON."""
        return _digest(self.canonical())

    @cached_property
    def identity(self) -> str:
        """16 hexadecimal digits, equal for definitions that partition an asset alike.

        Bounds, exclusions and lists of keys do not count, so a wider definition keeps the
        materialized partitions.
        """
        return _digest(
            [[dimension.name, dimension.definition.shape()] for dimension in self.dimensions]
        )[:16]

    @property
    def time_dimension(self) -> "PartitionByTime | None":
        """The definition of the time dimension, if there is one."""
        from slicewise.partitions.by_time import PartitionByTime

        definitions = (dimension.definition for dimension in self.dimensions)
        return next((item for item in definitions if isinstance(item, PartitionByTime)), None)

    @property
    def segment_dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions other than time."""
        time = self.time_dimension
        return tuple(dimension for dimension in self.dimensions if dimension.definition is not time)

    @property
    def calendar_unit(self) -> CalendarUnit | None:
        """The unit in which pages draw the time dimension, None without a time dimension."""
        time = self.time_dimension
        return None if time is None else time.calendar_unit

    def keys(self, since: Moment | None = None, until: Moment | None = None) -> Sequence[Any]:
        """Return all keys in order (window start, then segment), as a lazy sequence.

        `since` and `until` bound the windows and are read like `start` and `end`. Raises
        UnboundedPartitionsError where neither these nor the definition bound a side.
        """
        return KeySequence(self.space, *self.space.between(*self._bounds(since, until)))

    def count(self, since: Moment | None = None, until: Moment | None = None) -> int:
        """Return the length of `keys`, without listing the keys."""
        numbers = self.space.between(*self._bounds(since, until))
        return self.space.count(*numbers) * self.space.segments.count

    def select(
        self, text: str, *, since: Moment | None = None, until: Moment | None = None
    ) -> "PartitionSet":
        """Return the partitions that a selection names, within [since, until) where given.

        Raises SelectionError, which points at the character that cannot be read.
        """
        from slicewise.partitions.selection import select

        return select(self, text, *self._bounds(since, until))

    def text(self, key: object) -> str:
        """Return the key text of a key or plain value.

        Raises PartitionKeyError for a value that is no key of the definition.
        """
        return self.space.text(*self.space.numbers(key))

    def __contains__(self, key: object) -> bool:
        return self.space.locate(key) is not None

    def _bounds(self, since: Moment | None, until: Moment | None) -> tuple[Bound, Bound]:
        time = self.time_dimension
        return (None, None) if time is None else time.read_bounds(since, until)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionDefinition):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a partition definition is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a partition definition is frozen: {name} stays")

    def __reduce__(self) -> tuple[object, ...]:
        return PartitionDefinition.from_json, (self.to_json(),)


plugins.register_base(plugins.PARTITIONS, PartitionDefinition)


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


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
