"""Partitions by product: combinations of the keys of several dimensions."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.names import check_name
from slicewise.keys.partition_key import PartitionKey, check_text
from slicewise.keys.product_key import SEPARATOR, ProductKey
from slicewise.partitions.by_sequence import PartitionBySequence
from slicewise.partitions.by_time import PartitionByTime
from slicewise.partitions.definition import DEFAULT_SEGMENT, Dimension, Json, PartitionDefinition
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.segments import Segments, refuse_long

Dimensions = Mapping[str, PartitionDefinition] | Iterable[PartitionDefinition]


class PartitionByProduct(PartitionDefinition, kind="product"):
    """One partition for each combination of keys (AIP-76).

    `dimensions` is a mapping of names to definitions, or a list of definitions: a dimension is then
    named by the definition's `name`, else `time`, `segment`, `segment_2`, …. At most one dimension
    is by time; the other dimensions are by sequence. Raises DefinitionError.
    """

    _dimensions: tuple[Dimension, ...]

    def __init__(self, dimensions: Dimensions) -> None:
        if isinstance(dimensions, Mapping):
            named = [Dimension(name, definition) for name, definition in dimensions.items()]
        elif isinstance(dimensions, str | PartitionDefinition) or not isinstance(
            dimensions, Iterable
        ):
            raise DefinitionError(
                f"a product takes a list of definitions, or a dict by name, not {dimensions!r}"
            )
        else:
            named = _named_dimensions(list(dimensions))
        _check(named)
        vars(self).update(_dimensions=tuple(named), name=None)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions in order."""
        return self._dimensions

    @cached_property
    def space(self) -> KeyIndex:
        """The keys as numbers: windows times segments."""
        time = self.time_dimension
        lists = [
            dimension.definition.values
            for dimension in self._dimensions
            if isinstance(dimension.definition, PartitionBySequence)
        ]
        definitions = [dimension.definition for dimension in self._dimensions]
        return KeyIndex(
            tuple(dimension.name for dimension in self._dimensions),
            None if time is None else time.space.windows,
            0 if time is None else definitions.index(time),
            Segments(lists),
            product=True,
        )

    def parse(self, text: str) -> ProductKey:
        """Return the key of a key text, `2024-01-01|marketing`. Raises PartitionKeyError."""
        check_text(text)
        texts = text.split(SEPARATOR)
        if len(texts) != len(self._dimensions):
            names = SEPARATOR.join(self.space.names)
            raise PartitionKeyError(
                f"{text!r} is no key of {names}: the text has {len(texts)} parts"
            )
        components: list[PartitionKey] = [
            dimension.definition.parse(component)
            for dimension, component in zip(self._dimensions, texts, strict=True)
        ]
        return ProductKey.of_parts(self.space.names, tuple(components))

    def to_json(self) -> Json:
        """Return the kind and the dimensions."""
        return {
            "kind": self.kind,
            "dimensions": self._listed(lambda definition: definition.to_json()),
        }

    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""
        return {
            "kind": self.kind,
            "dimensions": self._listed(lambda definition: {**definition.canonical(), "name": None}),
        }

    def _listed(self, write: Any) -> list[Json]:
        return [
            {"name": name, "definition": write(definition)} for name, definition in self._dimensions
        ]

    def shape(self) -> str:
        """Return the kind; never used, since a product's identity is computed of its dimensions."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        cls.check_fields(spec, "dimensions")
        return cls(
            {
                dimension["name"]: PartitionDefinition.from_json(dimension["definition"])
                for dimension in spec["dimensions"]
            }
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {definition!r}" for name, definition in self._dimensions)
        return f"PartitionByProduct({{{shown}}})"


def _named_dimensions(definitions: list[PartitionDefinition]) -> list[Dimension]:
    """Return named dimensions: by the definition's name, else time, segment, segment_2, …."""
    dimensions, segments = [], 0
    for definition in definitions:
        _check_definition(definition)
        if isinstance(definition, PartitionByTime):
            default = "time"
        else:
            segments += 1
            default = DEFAULT_SEGMENT if segments == 1 else f"{DEFAULT_SEGMENT}_{segments}"
        dimensions.append(Dimension(definition.name or default, definition))
    return dimensions


def _check(dimensions: list[Dimension]) -> None:
    for name, definition in dimensions:
        check_name(name)
        _check_definition(definition)
    if not dimensions:
        raise DefinitionError("a product has at least one dimension")
    times = [name for name, definition in dimensions if isinstance(definition, PartitionByTime)]
    if len(times) > 1:
        raise DefinitionError(f"a product has at most one time dimension, not {', '.join(times)}")
    # Spark compares names of columns without regard to case.
    if len({name.casefold() for name, _ in dimensions}) < len(dimensions):
        names = ", ".join(name for name, _ in dimensions)
        raise DefinitionError(f"two dimensions of a product have one name: {names}")
    lists = []
    for name, sequence in dimensions:
        if isinstance(sequence, PartitionBySequence):
            sequence.values.refuse_long_folders(name)
            lists.append(sequence.values)
    refuse_long(lists, with_time=bool(times))


def _check_definition(definition: object) -> None:
    if not isinstance(definition, PartitionByTime | PartitionBySequence):
        kind = getattr(definition, "kind", type(definition).__name__)
        hint = f"; write PartitionByInterval({definition!r})" if isinstance(definition, str) else ""
        raise DefinitionError(f"a product takes intervals and sequences, not {kind}{hint}")
