"""Partitions by sequence (segments), and partitions found at run time."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self
from urllib.parse import unquote

from slicewise.definitions import DEFAULT_NAME, Dimension, Json, PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError, UnboundedPartitionsError
from slicewise.key_json import key_from_json, key_to_json
from slicewise.keys import PartitionKey, type_group
from slicewise.names import check_name
from slicewise.segments import SegmentList, Segments
from slicewise.space import Space


class PartitionBySequence(PartitionDefinition, kind="sequence"):
    """One partition for each value of a list, in its order (AIP-76).

    Values are plain (str, int, date, tuple, …) or PartitionKeys. `name` is the dimension's.
    Raises DefinitionError for an empty list and for two keys of equal text.
    """

    values: SegmentList

    def __init__(self, values: Iterable[object], *, name: str | None = None) -> None:
        if isinstance(values, str):
            raise DefinitionError(f"a sequence takes a list of keys, not the text {values!r}")
        try:
            listed = SegmentList(values)
        except PartitionKeyError as error:
            raise DefinitionError(str(error)) from error
        vars(self).update(values=listed, name=check_name(name))

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension of segments."""
        return (Dimension(self.name or DEFAULT_NAME, self),)

    @cached_property
    def space(self) -> Space:
        """The segments as numbers."""
        return Space((self.dimensions[0].name,), None, 0, Segments([self.values]), product=False)

    def parse(self, text: str) -> PartitionKey:
        """The key of a key text. Raises PartitionKeyError where it names none."""
        place = self.values.places.get(text)
        if place is None:
            raise PartitionKeyError(f"{text!r} is none of the {len(self.values)} segments")
        return self.values.keys[place]

    def to_json(self) -> Json:
        """Kind, values and name."""
        values = [key_to_json(key) for key in self.values.keys]
        return {"kind": self.kind, "values": values, "name": self.name}

    def canonical(self) -> Json:
        """JSON that is the same for equal definitions."""
        name = self.dimensions[0].name
        values = [[type_group(key.value), key.text] for key in self.values.keys]
        return {"kind": self.kind, "values": values, "name": name}

    def shape(self) -> str:
        """All sequences are of one shape."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        return cls([key_from_json(value) for value in spec["values"]], name=spec.get("name"))

    def __repr__(self) -> str:
        shown = ", ".join(self.values.texts[:5])
        return f"PartitionBySequence([{shown}{', …' if len(self.values) > 5 else ''}])"


class PartitionAtRuntime(PartitionDefinition, kind="runtime"):
    """Partitions that runs discover; assets that name the same set share its keys (AIP-76).

    Which keys there are is known to the server, so the definition lists none by itself.
    """

    name: str

    def __init__(self, name: str) -> None:
        if not name or check_name(name) is None:
            raise DefinitionError("a set of partitions found at run time needs a name")
        vars(self).update(name=name)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension, called like the set."""
        return (Dimension(self.name, self),)

    @cached_property
    def space(self) -> Space:
        """Raises UnboundedPartitionsError: the keys are not in the definition."""
        self._refuse()

    def keys(self, since: object = None, until: object = None) -> Sequence[PartitionKey]:
        """Raises UnboundedPartitionsError: the keys are not in the definition."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnboundedPartitionsError(
            f"the partitions of {self.name!r} are found at run time: the server knows them"
        )

    def parse(self, text: str) -> PartitionKey:
        """The key of that text, whether it has been found or not."""
        return PartitionKey.of(unquote(text))

    def text(self, key: object) -> str:
        """The key text of a key or plain value, whether it has been found or not."""
        return PartitionKey.of(key).text

    def to_json(self) -> Json:
        """Kind and name."""
        return {"kind": self.kind, "name": self.name}

    def canonical(self) -> Json:
        """The same as `to_json`."""
        return self.to_json()

    def shape(self) -> str:
        """The same for all sets found at run time; their names tell them apart."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        return cls(spec["name"])

    def __repr__(self) -> str:
        return f"PartitionAtRuntime(name={self.name!r})"
