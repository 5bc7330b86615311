"""The base class of partition definitions (AIP-76, "Partition"), and sets of partitions."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from slicewise import plugins
from slicewise.calendar.cadence import CalendarUnit
from slicewise.calendar.time_text import Moment
from slicewise.calendar.zones import Zone
from slicewise.errors import DefinitionError
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.key_sequence import KeySequence
from slicewise.partitions.key_set import KeySet
from slicewise.partitions.selection import LONGEST_SELECTION, Selection
from slicewise.partitions.window_ranges import WindowRange
from slicewise.partitions.windows import Bound, WindowSequence

Json = dict[str, Any]
Excluded = str | date | datetime
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
    discovers_keys: ClassVar[bool] = False
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
    def check_fields(spec: Mapping[str, Any], *names: str) -> None:
        """Raise DefinitionError for a field of the JSON that is neither the kind nor named here."""
        if unknown := sorted(map(str, spec.keys() - {"kind", *names})):
            raise DefinitionError(
                f"bad JSON of a partition definition: no field {', '.join(unknown)}"
            )

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
    def time_dimension(self) -> "TimeDefinition | None":
        """The definition of the time dimension, a `PartitionByTime`, if there is one."""
        definitions = (dimension.definition for dimension in self.dimensions)
        return next((item for item in definitions if isinstance(item, TimeDefinition)), None)

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
        bounds = self._bounds(since, until)
        return PartitionSet(*self.read_selection(text, *bounds, longest=LONGEST_SELECTION))

    def read_selection(
        self, text: str, since: Bound, until: Bound, *, longest: int | None
    ) -> tuple["PartitionDefinition", list[WindowRange]]:
        """Return the window ranges that a selection names, and the definition that numbers them.

        The definition is this one, with the named keys where keys are discovered and not listed.
        """
        selection = Selection.of(text, longest)
        names = [dimension.name for dimension in self.dimensions]
        definition = self.with_keys(selection.keys_by_name(names, self.parse))
        return definition, selection.window_ranges(definition.space, definition.parse, since, until)

    def with_keys(self, keys: Iterable[object]) -> "PartitionDefinition":
        """Return the definition, with these keys where keys are discovered and not listed."""
        return self

    def united(self, other: "PartitionDefinition") -> "PartitionDefinition":
        """Return an equal definition whose numbers are those of the keys of both definitions."""
        return self

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
        raise AttributeError(f"a partition definition is frozen: {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        return PartitionDefinition.from_json, (self.to_json(),)


plugins.register_base(plugins.PARTITIONS, PartitionDefinition)


class TimeDefinition(PartitionDefinition):
    """A definition of windows of time: the part of `PartitionByTime` that other modules use."""

    timezone: str
    start: datetime | None
    end: datetime | None
    exclude: tuple[Excluded, ...]

    @property
    @abstractmethod
    def zone(self) -> Zone:
        """The time zone with its offsets."""

    @property
    @abstractmethod
    def calendar_unit(self) -> CalendarUnit:
        """The unit in which pages draw the windows."""

    @abstractmethod
    def windows(self, since: Moment | None = None, until: Moment | None = None) -> WindowSequence:
        """Return the windows wholly inside [since, until) and the definition's bounds, in order."""

    @abstractmethod
    def window_at(self, instant: datetime) -> Interval | None:
        """Return the window that contains the instant (naive: wall time in the zone), or None."""

    @abstractmethod
    def read_bounds(self, since: Moment | None, until: Moment | None) -> tuple[Bound, Bound]:
        """Return `since` and `until` in seconds, read like `start` and `end`."""


class PartitionSet(KeySet[PartitionDefinition]):
    """Some partitions of one definition (None: the single partition of an unpartitioned asset).

    Ordered by window start, then segment. Supports `len`, `in`, iteration, `|`, `&`, `-`. Created
    by `definition.select`, by mappings, and by `PartitionSet.of`. Sets of one `PartitionAtRuntime`
    combine and compare by their keys, even if the snapshots of their definitions hold different
    keys.

    For a set that a mapping created, `nonexistent` names the partitions that the mapping reaches
    and the definition does not have. Two kinds exist: `excluded` partitions, which `exclude=` takes
    out and no partition needs; and partitions outside the definition's bounds or of unknown
    segments. `blocking` names the second kind, as far as needed: a mapping with
    `nonexistent="ignore"` does not need windows outside the bounds.
    """


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
