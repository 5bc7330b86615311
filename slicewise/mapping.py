"""Which partitions of one asset those of another need (calendar, "Which upstream partitions")."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.key_json import key_from_json, key_to_json
from slicewise.keys import PartitionKey, PlainValue
from slicewise.moments import Moment
from slicewise.partition_set import Nonexistent, PartitionSet, Slab
from slicewise.relation import Bounds, Definition, related


def upstream_partitions(
    downstream: Definition,
    upstream: Definition,
    keys: object,
    mapping: "PartitionMapping | None" = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> PartitionSet:
    """The upstream partitions that some downstream partitions need.

    `keys` is one key of the downstream definition, a list of keys or a PartitionSet; a definition
    of None is that of an asset that is not partitioned. Windows need all that overlap them,
    segments the equal ones, and a dimension that only one side has is needed whole: of time, the
    part in [since, until) and the upstream's bounds; UnboundedPartitionsError where neither bounds
    a side. A `mapping` says otherwise. What is needed and does not exist is in `.nonexistent`.
    """
    chosen, bounds = _as_set(downstream, keys), _bounds(upstream, since, until)
    if mapping is None:
        return related(downstream, upstream, chosen, bounds)
    return mapping.upstream(downstream, upstream, chosen, bounds)


def downstream_partitions(
    upstream: Definition,
    downstream: Definition,
    keys: object,
    mapping: "PartitionMapping | None" = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> PartitionSet:
    """The downstream partitions that need some of the given upstream ones.

    The mirror image of `upstream_partitions`, with the same arguments.
    """
    chosen, bounds = _as_set(upstream, keys), _bounds(downstream, since, until)
    if mapping is None:
        return related(upstream, downstream, chosen, bounds)
    return mapping.downstream(upstream, downstream, chosen, bounds)


class PartitionMapping(ABC):
    """A rule that says which upstream partitions a downstream one needs, in place of overlap.

    Subclasses are frozen values. `bounds` are seconds that stand in for a missing start or end of
    the wanted definition.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["PartitionMapping"]]] = {}

    def __init_subclass__(cls, kind: str, **others: object) -> None:
        super().__init_subclass__(**others)
        if kind in PartitionMapping._kinds:
            raise TypeError(f"two classes of partition mappings call themselves {kind!r}")
        cls.kind = kind
        PartitionMapping._kinds[kind] = cls

    @abstractmethod
    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """The upstream partitions that the chosen downstream ones need."""

    @abstractmethod
    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """The downstream partitions that need some of the chosen upstream ones."""

    def to_json(self) -> dict[str, Any]:
        """The mapping as JSON."""
        return {"kind": self.kind, **self._arguments()}

    @staticmethod
    def from_json(spec: Mapping[str, Any]) -> "PartitionMapping":
        """The mapping that `to_json` wrote. Raises DefinitionError for anything else."""
        arguments = {name: value for name, value in spec.items() if name != "kind"}
        found = PartitionMapping._kinds.get(str(spec.get("kind")))
        if found is None:
            raise DefinitionError(f"unknown kind of partition mapping: {spec.get('kind')!r}")
        try:
            return found._of_arguments(arguments)
        except TypeError as error:
            raise DefinitionError(f"bad JSON of a partition mapping: {error}") from error

    def _arguments(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)


@dataclass(frozen=True)
class Offset(PartitionMapping, kind="offset"):
    """What overlaps the downstream windows `first` to `last`, counted from one's own.

    `Offset(-1)` lags one window, `Offset(-6, 0)` slides over seven. Windows before the downstream
    definition's start and excluded ones count. Raises DefinitionError where last is before first.
    """

    first: int
    last: int | None = None

    def __post_init__(self) -> None:
        if self.last is None:
            object.__setattr__(self, "last", self.first)
        elif self.last < self.first:
            raise DefinitionError(f"an Offset from {self.first} to {self.last} takes in nothing")

    @property
    def _reach(self) -> tuple[int, int]:
        return self.first, self.first if self.last is None else self.last

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """What overlaps the windows in reach of the chosen ones."""
        _check_has_time(downstream)
        return related(downstream, upstream, chosen, bounds, widen=self._reach)

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """The windows from which one that overlaps the chosen ones is in reach."""
        _check_has_time(downstream)
        first, last = self._reach
        return related(upstream, downstream, chosen, bounds, shift=(-last, -first))

    def _arguments(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last}


@dataclass(frozen=True)
class All(PartitionMapping, kind="all"):
    """All upstream partitions, whatever the downstream one."""

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """All of them, within the bounds."""
        return _everything(upstream, bounds) if chosen else PartitionSet(upstream, ())

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """All of them, within the bounds."""
        return _everything(downstream, bounds) if chosen else PartitionSet(downstream, ())


@dataclass(frozen=True, init=False)
class Keys(PartitionMapping, kind="keys"):
    """The same upstream partitions for every downstream one, by key, plain value or key text."""

    keys: frozenset[PartitionKey]

    def __init__(self, keys: Iterable[PartitionKey | PlainValue]) -> None:
        # Windows and products are kept as texts: what a text means, the upstream's definition says.
        plain = (key.text if isinstance(key, PartitionKey) else key for key in map(_unwrap, keys))
        object.__setattr__(self, "keys", frozenset(map(PartitionKey.of, plain)))

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """These keys; what the definition lacks of them is nonexistent."""
        if not chosen:
            return PartitionSet(upstream, ())
        found, missing = [], []
        for key in sorted(self.keys, key=lambda key: key.text):
            if (known := _find(upstream, key)) is None:
                missing.append(str(key.value))
            else:
                found.append(known)
        slabs = PartitionSet.of(upstream, found).slabs
        return PartitionSet(upstream, slabs, Nonexistent((), tuple(missing)))

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """All of them if one of these keys is chosen, else none."""
        if any(_find(upstream, key) in chosen for key in self.keys):
            return _everything(downstream, bounds)
        return PartitionSet(downstream, ())

    def _arguments(self) -> dict[str, Any]:
        return {"keys": sorted((key_to_json(key) for key in self.keys), key=repr)}

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(key_from_json(key) for key in arguments.pop("keys", ()))


def _as_set(definition: Definition, keys: object) -> PartitionSet:
    if isinstance(keys, list):
        return PartitionSet.of(definition, keys)
    if not isinstance(keys, PartitionSet):
        return PartitionSet.of(definition, [keys])
    if keys.definition != definition:
        raise PartitionKeyError("the set of partitions is one of another definition")
    return keys


def _bounds(definition: Definition, since: Moment | None, until: Moment | None) -> Bounds:
    time = None if definition is None else definition.time_dimension
    return (None, None) if time is None else time.read_bounds(since, until)


def _everything(definition: Definition, bounds: Bounds) -> PartitionSet:
    whole = PartitionSet(definition, ())
    numbers = whole.space.between(*bounds)
    return PartitionSet(definition, [Slab(*numbers, whole.space.segments.all)])


def _check_has_time(definition: Definition) -> None:
    if definition is None or definition.time_dimension is None:
        raise DefinitionError(f"an Offset counts windows of time; {definition!r} has none")


def _unwrap(key: PartitionKey | PlainValue) -> PlainValue:
    return key.value if isinstance(key, PartitionKey) else key


def _find(definition: Definition, key: PartitionKey) -> PartitionKey | None:
    """The key of the definition that a key, a plain value or a key text stands for."""
    if definition is None or key in definition:
        return key
    try:
        return definition.parse(str(key.value))
    except PartitionKeyError:
        return None
