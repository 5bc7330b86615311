"""Mappings: which upstream partitions a downstream partition needs (docs/internals/calendar.md,
need rules).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from slicewise import plugins
from slicewise.calendar.time_text import Moment
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.partition_key import PartitionKey
from slicewise.mapping.overlap import Ranges, Span
from slicewise.mapping.relation import Bounds, related_partitions
from slicewise.partitions.definition import PartitionDefinition, PartitionSet
from slicewise.partitions.runtime_keys import Definition, named_key
from slicewise.partitions.windows import Windows

Nonexistence = Literal["need", "ignore"]
"""Whether upstream windows outside the upstream's bounds are needed or ignored."""


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
    key, plain value or key text. A definition of None stands for an asset that is not partitioned;
    its one key is None, and `slicewise.keys.WHOLE` in a set. A window needs all windows that
    overlap, a segment needs the equal segment, and a dimension that only one side has is needed
    whole: of time, the windows in [since, until) and the upstream's bounds. Raises
    UnboundedPartitionsError where neither bounds a side. A `mapping` replaces these rules.
    Partitions that the keys reach and the upstream does not have are in `.nonexistent`: windows
    that the upstream's `exclude=` removes, which no partition needs (`.excluded`), and partitions
    without which a partition is never materialized (`.blocking`).
    """
    _check(downstream, upstream, mapping)
    chosen, bounds = _as_set(downstream, keys), _bounds(upstream, downstream, since, until)
    if mapping is None:
        return related_partitions(downstream, upstream, chosen, bounds)
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
    """Return the downstream partitions that need some of the given upstream partitions.

    The mirror image of `upstream_partitions`, with the same arguments.
    """
    _check(downstream, upstream, mapping)
    chosen, bounds = _as_set(upstream, keys), _bounds(downstream, upstream, since, until)
    if mapping is None:
        return related_partitions(upstream, downstream, chosen, bounds)
    return mapping.downstream(upstream, downstream, chosen, bounds)


class PartitionMapping(ABC):
    """A rule that says which upstream partitions a downstream partition needs, instead of overlap.

    Subclasses are frozen values. `bounds`, in seconds, narrow the windows of a time dimension that
    only the target has.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "", **options: object) -> None:
        super().__init_subclass__(**options)
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
        """Return the upstream partitions that the chosen downstream partitions need."""

    @abstractmethod
    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the downstream partitions that need some of the chosen upstream partitions."""

    def to_json(self) -> dict[str, Any]:
        """Return the mapping as JSON."""
        return {"kind": self.kind, **self._arguments()}

    @staticmethod
    def from_json(spec: Mapping[str, Any]) -> "PartitionMapping":
        """Return the mapping that `to_json` wrote. Raises DefinitionError for other JSON."""
        if not isinstance(spec, Mapping):
            raise DefinitionError(f"{spec!r:.200} is no JSON of a partition mapping: no object")
        arguments = {name: value for name, value in spec.items() if name != "kind"}
        mapping_class = plugins.find(plugins.MAPPINGS, spec.get("kind"))
        try:
            mapping: PartitionMapping = mapping_class._of_arguments(arguments)
            return mapping
        except (KeyError, TypeError, AttributeError) as error:
            raise DefinitionError(f"bad JSON of a partition mapping: {error}") from error

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments as JSON; for a dataclass, the fields."""
        own_fields: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        return {field.name: getattr(self, field.name) for field in own_fields}

    @classmethod
    def _of_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)


plugins.register_base(plugins.MAPPINGS, PartitionMapping)


class WindowMapping(PartitionMapping):
    """A mapping of windows to windows; the other dimensions pair as without a mapping.

    The two methods take and return ranges of window numbers, so that a set of a million windows is
    not walked. The two methods must agree: n is in upstream_windows(m) exactly where m is in
    downstream_windows(n). Windows outside the bounds and excluded windows are left out afterwards.

    A subclass may have a field `nonexistent`, as `Offset` has: with "need", windows outside the
    upstream's bounds block a partition; with "ignore", such windows are not needed.
    """

    nonexistent: Nonexistence = "need"

    def __post_init__(self) -> None:
        """Check the fields of a dataclass. Raises DefinitionError for another `nonexistent`."""
        if self.nonexistent not in get_args(Nonexistence):
            raise DefinitionError(
                f'nonexistent is "need" or "ignore", not {self.nonexistent!r}: the'
                " treatment of windows outside the upstream's bounds"
            )

    def _arguments(self) -> dict[str, Any]:
        # The default is left out, since a change of the JSON makes a new version of the code.
        arguments = super()._arguments()
        if arguments.get("nonexistent") == "need":
            del arguments["nonexistent"]
        return arguments

    @abstractmethod
    def upstream_windows(
        self, downstream: Windows, ranges: Ranges, upstream: Windows
    ) -> Iterable[Span]:
        """Return ranges of upstream windows, in order, that ranges of downstream windows need."""

    @abstractmethod
    def downstream_windows(
        self, upstream: Windows, ranges: Ranges, downstream: Windows
    ) -> Iterable[Span]:
        """Return ranges of downstream windows, in order, that need windows of upstream ranges."""

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError where the downstream definition has no windows to count from."""
        if downstream is None or downstream.time_dimension is None:
            shown = "an asset that is not partitioned" if downstream is None else repr(downstream)
            raise DefinitionError(f"{self!r} counts windows of time; {shown} has none")

    def upstream(
        self, downstream: Definition, upstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the upstream windows that the chosen windows need, with the equal segments."""
        ignores = self.nonexistent == "ignore"
        return related_partitions(
            downstream, upstream, chosen, bounds, self.upstream_windows, ignores_outside=ignores
        )

    def downstream(
        self, upstream: Definition, downstream: Definition, chosen: PartitionSet, bounds: Bounds
    ) -> PartitionSet:
        """Return the downstream windows that need the chosen windows, with the equal segments."""
        return related_partitions(upstream, downstream, chosen, bounds, self.downstream_windows)


def _check(downstream: Definition, upstream: Definition, mapping: object) -> None:
    for side, definition in (("downstream", downstream), ("upstream", upstream)):
        if definition is not None and not isinstance(definition, PartitionDefinition):
            raise DefinitionError(f"{side} is a partition definition or None, not {definition!r}")
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
            raise PartitionKeyError("the set of partitions belongs to another partition definition")
        return keys
    # Each of these is one key, not a list of keys; the key of a product is a PartitionKey.
    is_key = isinstance(keys, str | tuple | frozenset | PartitionKey)
    items = keys if isinstance(keys, Iterable) and not is_key else [keys]
    return PartitionSet.of(definition, [named_key(definition, item) for item in items])


def _bounds(
    target: Definition, source: Definition, since: Moment | None, until: Moment | None
) -> Bounds:
    """Return `since` and `until` in seconds, in the zone of the target if the target has time."""
    times = [side.time_dimension for side in (target, source) if side is not None]
    time = next((dimension for dimension in times if dimension is not None), None)
    return (None, None) if time is None else time.read_bounds(since, until)
