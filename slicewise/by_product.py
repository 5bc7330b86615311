"""Partitions by product: combinations of the keys of several dimensions."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self

from slicewise.by_sequence import PartitionBySequence
from slicewise.by_time import PartitionByTime
from slicewise.definitions import DEFAULT_SEGMENT, Dimension, Json, PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys import SEPARATOR, PartitionKey, ProductKey, check_text
from slicewise.names import check_name
from slicewise.segments import Segments, refuse_long
from slicewise.space import Space

Dimensions = Mapping[str, PartitionDefinition] | Iterable[PartitionDefinition]


class PartitionByProduct(PartitionDefinition, kind="product"):
    """One partition for each combination of keys (AIP-76).

    Takes a mapping of names to definitions, or a list: its dimensions are called by their `name`,
    else `time`, `segment`, `segment_2`, …. At most one may be by time, the others by sequence.
    Raises DefinitionError.
    """

    _dimensions: tuple[Dimension, ...]

    def __init__(self, dimensions: Dimensions) -> None:
        if isinstance(dimensions, Mapping):
            named = [Dimension(name, each) for name, each in dimensions.items()]
        elif isinstance(dimensions, str | PartitionDefinition) or not isinstance(
            dimensions, Iterable
        ):
            raise DefinitionError(
                f"a product takes a list of definitions, or a dict by name, not {dimensions!r}"
            )
        else:
            named = _with_names(list(dimensions))
        _check(named)
        vars(self).update(_dimensions=tuple(named), name=None)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions in order."""
        return self._dimensions

    @cached_property
    def space(self) -> Space:
        """Windows times segments, as numbers."""
        time = self.time_dimension
        lists = [
            each.definition.values
            for each in self._dimensions
            if isinstance(each.definition, PartitionBySequence)
        ]
        definitions = [each.definition for each in self._dimensions]
        return Space(
            tuple(each.name for each in self._dimensions),
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
            raise PartitionKeyError(f"{text!r} is no key of {names}: it has {len(texts)} parts")
        parts: list[PartitionKey] = [
            each.definition.parse(part) for each, part in zip(self._dimensions, texts, strict=True)
        ]
        return ProductKey.of_parts(self.space.names, tuple(parts))

    def to_json(self) -> Json:
        """Kind and dimensions."""
        return {"kind": self.kind, "dimensions": self._listed(lambda each: each.to_json())}

    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""
        return {
            "kind": self.kind,
            "dimensions": self._listed(lambda each: {**each.canonical(), "name": None}),
        }

    def _listed(self, write: Any) -> list[Json]:
        return [
            {"name": name, "definition": write(definition)} for name, definition in self._dimensions
        ]

    def shape(self) -> str:
        """Never asked for: a product's identity is that of its dimensions."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        return cls(
            {
                each["name"]: PartitionDefinition.from_json(each["definition"])
                for each in spec["dimensions"]
            }
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {definition!r}" for name, definition in self._dimensions)
        return f"PartitionByProduct({{{shown}}})"


def _with_names(definitions: list[PartitionDefinition]) -> list[Dimension]:
    """Names for a list: its definitions' own, else time, segment, segment_2, …."""
    named, segments = [], 0
    for each in definitions:
        _check_definition(each)
        if isinstance(each, PartitionByTime):
            default = "time"
        else:
            segments += 1
            default = DEFAULT_SEGMENT if segments == 1 else f"{DEFAULT_SEGMENT}_{segments}"
        named.append(Dimension(each.name or default, each))
    return named


def _check(dimensions: list[Dimension]) -> None:
    for name, definition in dimensions:
        check_name(name)
        _check_definition(definition)
    if not dimensions:
        raise DefinitionError("a product has at least one dimension")
    times = [name for name, each in dimensions if isinstance(each, PartitionByTime)]
    if len(times) > 1:
        raise DefinitionError(f"a product has at most one time dimension, not {', '.join(times)}")
    # Spark tells columns apart without regard to case.
    if len({name.casefold() for name, _ in dimensions}) < len(dimensions):
        names = ", ".join(name for name, _ in dimensions)
        raise DefinitionError(f"two dimensions of a product have one name: {names}")
    lists = []
    for name, each in dimensions:
        if isinstance(each, PartitionBySequence):
            each.values.refuse_long_folders(name)
            lists.append(each.values)
    refuse_long(lists, with_time=bool(times))


def _check_definition(definition: object) -> None:
    if not isinstance(definition, PartitionByTime | PartitionBySequence):
        kind = getattr(definition, "kind", type(definition).__name__)
        hint = f"; write PartitionByInterval({definition!r})" if isinstance(definition, str) else ""
        raise DefinitionError(f"a product takes intervals and sequences, not {kind}{hint}")
