"""Partitions by sequence (segments), and partitions discovered at run time."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self
from urllib.parse import unquote

from slicewise.errors import DefinitionError, PartitionKeyError, UnboundedPartitionsError
from slicewise.keys.key_json import key_from_json, key_to_json
from slicewise.keys.names import check_name
from slicewise.keys.partition_key import PartitionKey, check_text, exact_of
from slicewise.keys.value_texts import readable
from slicewise.partitions.definition import DEFAULT_NAME, Dimension, Json, PartitionDefinition
from slicewise.partitions.discovering import add_key_for_run
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.segments import SegmentList, Segments, check_key_list


class PartitionBySequence(PartitionDefinition, kind="sequence"):
    """One partition for each value of a list, in the order of the list (AIP-76).

    Values are plain (str, int, date, tuple, …) or keys of people's own classes. `name` is the
    dimension's name. Raises DefinitionError for an empty list, for a value that cannot be a key,
    for two keys of equal text (1 and "1"), and for a key whose folder `name=value` would be too
    long.
    """

    values: SegmentList

    def __init__(self, values: Iterable[object], *, name: str | None = None) -> None:
        if isinstance(values, set | frozenset):
            # Hashes of texts, and so the order of a set, differ from process to process.
            raise DefinitionError(
                f"a sequence takes a list of keys, and a set has no order: write sorted({values!r})"
            )
        check_key_list("a sequence", values)
        vars(self).update(values=SegmentList(values), name=check_name(name))
        if not len(self.values):
            raise DefinitionError("a sequence has at least one key")
        self.values.refuse_long_folders(self.dimensions[0].name)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension of segments."""
        return (Dimension(self.name or DEFAULT_NAME, self),)

    @cached_property
    def space(self) -> KeyIndex:
        """The segments, by number."""
        return KeyIndex((self.dimensions[0].name,), None, 0, Segments([self.values]), product=False)

    def parse(self, text: str) -> PartitionKey:
        """Return the key of a key text. Raises PartitionKeyError if no key has that text."""
        return self.values.parse(text)

    def to_json(self) -> Json:
        """Return the kind, values and name."""
        values = [key_to_json(key) for key in self.values.keys]
        return {"kind": self.kind, "values": values, "name": self.name}

    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""
        name = self.dimensions[0].name
        values = [exact_of(key) for key in self.values.keys]
        return {"kind": self.kind, "values": values, "name": name}

    def shape(self) -> str:
        """Return the kind: all sequences have one shape."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        cls.check_fields(spec, "values", "name")
        return cls([key_from_json(value) for value in spec["values"]], name=spec.get("name"))

    def __repr__(self) -> str:
        shown = ", ".join(map(readable, self.values.texts[:5]))
        return f"PartitionBySequence([{shown}{', …' if len(self.values) > 5 else ''}])"


class PartitionAtRuntime(PartitionDefinition, kind="runtime"):
    """Partitions that runs discover; assets that name the same set share the set's keys (AIP-76).

    The server stores the keys: listing keys needs a snapshot, `known(keys)`. Definitions of one
    name are equal, also with different snapshots. Raises DefinitionError for a name that no column
    could have.
    """

    discovers_keys = True
    name: str
    _snapshot: SegmentList | None

    def __init__(self, name: str) -> None:
        if not name or check_name(name) is None:
            raise DefinitionError("a set of partitions found at run time needs a name")
        vars(self).update(name=name, _snapshot=None)

    def known(self, keys: Iterable[object]) -> "PartitionAtRuntime":
        """Return the same set with a snapshot of keys (plain values or keys), which behaves like a
        definition by sequence.

        A key that comes twice counts once. Raises DefinitionError for two keys of equal text.
        """
        check_key_list("a snapshot", keys)
        snapshot = PartitionAtRuntime(self.name)
        vars(snapshot).update(_snapshot=SegmentList(dict.fromkeys(map(_key, keys))))
        return snapshot

    def with_keys(self, keys: Iterable[object]) -> "PartitionAtRuntime":
        """Return the set with a snapshot: of these keys, unless the set has a snapshot already."""
        return self.known(keys) if self._snapshot is None else self

    def united(self, other: PartitionDefinition) -> "PartitionAtRuntime":
        """Return the set with the keys of this snapshot and of the other one."""
        if not isinstance(other, PartitionAtRuntime) or self.values.texts == other.values.texts:
            return self
        return self.known((*self.values.keys, *other.values.keys))

    def add_partition(self, *, key: object) -> None:
        """Add a key (a plain value or a PartitionKey) to the set, from within a run.

        The key becomes visible when the run succeeds; a run that fails adds no key. A key added
        twice counts once. Raises RuntimeError outside of a run, PartitionKeyError for a value that
        cannot be a key.
        """
        add_key_for_run(self, PartitionKey.of(key))

    @property
    def values(self) -> SegmentList:
        """The keys of the snapshot. Raises UnboundedPartitionsError without one."""
        if self._snapshot is None:
            raise UnboundedPartitionsError(
                f"the partitions of {self.name!r} are found at run time: only the server has the"
                " list"
            )
        return self._snapshot

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension, named like the set."""
        return (Dimension(self.name, self),)

    @cached_property
    def space(self) -> KeyIndex:
        """The keys of the snapshot as numbers. Raises UnboundedPartitionsError without one."""
        return KeyIndex((self.name,), None, 0, Segments([self.values]), product=False)

    def parse(self, text: str) -> PartitionKey:
        """Return the key of a key text. Without a snapshot, every text is the text of a key.

        Raises PartitionKeyError if no key has that text.
        """
        if self._snapshot is not None:
            return self._snapshot.parse(text)
        check_text(text)
        return PartitionKey.of(unquote(text))

    def text(self, key: object) -> str:
        """Return the key text of a key or plain value, also of a key not in the set."""
        return PartitionKey.of(key).text

    def to_json(self) -> Json:
        """Return the kind and name, without the snapshot, which differs from time to time."""
        return {"kind": self.kind, "name": self.name}

    def canonical(self) -> Json:
        """Return the same as `to_json`."""
        return self.to_json()

    def shape(self) -> str:
        """Return the kind: sets discovered at run time are distinguished by name alone."""
        return self.kind

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        cls.check_fields(spec, "name")
        return cls(spec["name"])

    def __reduce__(self) -> tuple[object, ...]:
        # JSON has no snapshot, but a copy for another process of the same run keeps the snapshot.
        if self._snapshot is None:
            return super().__reduce__()
        return _known, (self.name, self._snapshot.keys)

    def __repr__(self) -> str:
        return f"PartitionAtRuntime(name={self.name!r})"


def _known(name: str, keys: Iterable[object]) -> PartitionAtRuntime:
    return PartitionAtRuntime(name).known(keys)


def _key(value: object) -> PartitionKey:
    try:
        return PartitionKey.of(value)
    except PartitionKeyError as error:
        raise DefinitionError(str(error)) from error
