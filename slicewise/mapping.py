"""Which partitions of one asset those of another need (docs/internals/calendar.md, need rules)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from slicewise import plugins
from slicewise.definitions import PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys import PartitionKey
from slicewise.moments import Moment
from slicewise.overlap import Ranges, Span
from slicewise.partition_set import PartitionSet
from slicewise.relation import Bounds, related
from slicewise.snapshots import Definition, named_key
from slicewise.windows import Windows

Nonexistence = Literal["need", "ignore"]
"""What becomes of upstream windows outside the upstream's bounds."""


def upstream_partitions(
    downstream: Definition,
    upstream: Definition,
    keys: object,
    mapping: "PartitionMapping | None" = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> PartitionSet:
    """Return the upstream partitions that some downstream partitions need.

    `keys` are a PartitionSet, or one key or a list of keys of the downstream definition, each a
    key, plain value or key text; a definition of None is that of an asset that is not partitioned,
    whose one key is None. Windows need all that overlap them,
    segments the equal ones, and a dimension that only one side has is needed whole: of time, the
    part in [since, until) and the upstream's bounds; UnboundedPartitionsError where neither bounds
    a side. A `mapping` says otherwise. What the keys reach and the upstream does not have is in
    `.nonexistent`: windows that its `exclude=` takes out, which no partition needs (`.excluded`),
    and what keeps a partition from ever being made (`.blocking`).
    """
    _check(downstream, upstream, mapping)
    chosen, bounds = _as_set(downstream, keys), _bounds(upstream, downstream, since, until)
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
    """Return the downstream partitions that need some of the given upstream ones.

    The mirror image of `upstream_partitions`, with the same arguments.
    """
    _check(downstream, upstream, mapping)
    chosen, bounds = _as_set(upstream, keys), _bounds(downstream, upstream, since, until)
    if mapping is None:
        return related(upstream, downstream, chosen, bounds)
    return mapping.downstream(upstream, downstream, chosen, bounds)


class PartitionMapping(ABC):
    """A rule that says which upstream partitions a downstream one needs, in place of overlap.

    Subclasses are frozen values. `bounds` are seconds that stand in for a missing start or end.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "", **others: object) -> None:
        super().__init_subclass__(**others)
        if kind:
            cls.kind = kind
            plugins.register(plugins.MAPPINGS, kind, cls)

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where the mapping makes no sense between these definitions."""
        return None

    @abstractmethod
    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the upstream partitions that the chosen downstream ones need."""

    @abstractmethod
    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the downstream partitions that need some of the chosen upstream ones."""

    def to_json(self) -> dict[str, Any]:
        """Return the mapping as JSON."""
        return {"kind": self.kind, **self._arguments()}

    @staticmethod
    def from_json(spec: Mapping[str, Any]) -> "PartitionMapping":
        """Return the mapping that `to_json` wrote. Raises DefinitionError for anything else."""
        if not isinstance(spec, Mapping):
            raise DefinitionError(f"{spec!r:.200} is no JSON of a partition mapping: no object")
        arguments = {name: value for name, value in spec.items() if name != "kind"}
        found = plugins.find(plugins.MAPPINGS, spec.get("kind"))
        try:
            read: PartitionMapping = found._of_arguments(arguments)
            return read
        except (KeyError, TypeError, AttributeError) as error:
            raise DefinitionError(f"bad JSON of a partition mapping: {error}") from error

    def _arguments(self) -> dict[str, Any]:
        """The arguments as JSON; of a dataclass, its fields."""
        listed: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        return {field.name: getattr(self, field.name) for field in listed}

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)


plugins.register_base(plugins.MAPPINGS, PartitionMapping)


class WindowMapping(PartitionMapping):
    """A mapping that says of windows alone what they need; the other dimensions go by the rules.

    Its two methods speak of windows by number, whole ranges at a time, so that a set of a million
    is not walked. They must say the same: n is in upstream_windows(m) exactly where m is in
    downstream_windows(n). What lies outside of bounds or is excluded is left out afterwards.

    A subclass may have a field `nonexistent`, as `Offset` has: "need" has windows outside the
    upstream's bounds block a partition, "ignore" does without them.
    """

    nonexistent: Nonexistence = "need"

    def __post_init__(self) -> None:
        """Check the fields of a dataclass. Raises DefinitionError for another `nonexistent`."""
        if self.nonexistent not in get_args(Nonexistence):
            raise DefinitionError(
                f'nonexistent is "need" or "ignore", not {self.nonexistent!r}: what becomes of'
                " windows outside the upstream's bounds"
            )

    def _arguments(self) -> dict[str, Any]:
        # Left out where it says nothing: the JSON is part of what tells versions of code apart.
        arguments = super()._arguments()
        if arguments.get("nonexistent") == "need":
            del arguments["nonexistent"]
        return arguments

    @abstractmethod
    def upstream_windows(
        self, downstream: Windows, ranges: Ranges, upstream: Windows
    ) -> Iterable[Span]:
        """Return ranges of upstream windows, in order, that ranges of downstream ones need."""

    @abstractmethod
    def downstream_windows(
        self, upstream: Windows, ranges: Ranges, downstream: Windows
    ) -> Iterable[Span]:
        """Ranges of downstream windows, in order, that need some of ranges of upstream ones."""

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where the downstream has no windows to count from."""
        if downstream is None or downstream.time_dimension is None:
            shown = "an asset that is not partitioned" if downstream is None else repr(downstream)
            raise DefinitionError(f"{self!r} counts windows of time; {shown} has none")

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the windows that the chosen ones need, of the segments that are equal."""
        ignores = self.nonexistent == "ignore"
        return related(
            downstream, upstream, chosen, bounds, self.upstream_windows, ignores_outside=ignores
        )

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the windows that need the chosen ones, of the segments that are equal."""
        return related(upstream, downstream, chosen, bounds, self.downstream_windows)


def _check(downstream: Definition, upstream: Definition, mapping: object) -> None:
    for side, each in (("downstream", downstream), ("upstream", upstream)):
        if each is not None and not isinstance(each, PartitionDefinition):
            raise DefinitionError(f"{side} is a partition definition or None, not {each!r}")
    if mapping is None:
        return
    if not isinstance(mapping, PartitionMapping):
        raise DefinitionError(
            f"a mapping is an object such as Offset(-1), Latest() or All(), not {mapping!r}"
        )
    mapping.check(downstream, upstream)


def _as_set(definition: Definition, keys: object) -> PartitionSet:
    if isinstance(keys, PartitionSet):
        if keys.definition != definition:
            raise PartitionKeyError("the set of partitions is one of another definition")
        return keys
    # A text, a tuple and a frozenset are keys themselves, and so is that of a product.
    is_key = isinstance(keys, str | tuple | frozenset | PartitionKey)
    several = keys if isinstance(keys, Iterable) and not is_key else [keys]
    return PartitionSet.of(definition, [named_key(definition, each) for each in several])


def _bounds(
    wanted: Definition, given: Definition, since: Moment | None, until: Moment | None
) -> Bounds:
    """Seconds of `since` and `until`, in the zone of what is wanted if that has one."""
    times = [each.time_dimension for each in (wanted, given) if each is not None]
    time = next((each for each in times if each is not None), None)
    return (None, None) if time is None else time.read_bounds(since, until)
