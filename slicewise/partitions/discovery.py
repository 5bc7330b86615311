"""Keys that a run adds to sets of runtime partitions (AIP-76, "Runtime partitions")."""

from threading import Lock

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.column_texts import refuse_long_folder
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.product_key import ProductKey, WholeKey
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.definition import PartitionDefinition


class Discoveries:
    """The keys that one run has discovered, by name of the set; for use by all threads of the run.

    A key added several times counts once. Keys become visible when the run succeeds.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[str, PartitionKey]] = {}
        self._lock = Lock()
        self._closed: str | None = None

    def close(self, reason: str) -> None:
        """Refuse all further keys, with this reason."""
        self._closed = reason

    def add(self, definition: PartitionDefinition | None, key: object) -> PartitionKey:
        """Add a key, or plain value, to a set; return the stored key.

        Raises DefinitionError where the definition is no `PartitionAtRuntime`, PartitionKeyError
        for a value that cannot be a key of such a set, RuntimeError once no key is taken any more.
        """
        if self._closed is not None:
            raise RuntimeError(f"no partition can be added to {definition!r}: {self._closed}")
        if not isinstance(definition, PartitionAtRuntime):
            raise DefinitionError(
                f"a run cannot add partitions to {definition!r}; only a PartitionAtRuntime takes"
                " partitions of runs"
            )
        checked = runtime_key(definition, key)
        with self._lock:
            stored_key = self._found.setdefault(definition.name, {}).setdefault(
                checked.text, checked
            )
        if stored_key != checked:
            raise PartitionKeyError(
                f"{stored_key.value!r} and {checked.value!r} would be one partition of"
                f" {definition.name!r}: both have the key text {checked.text!r}"
            )
        return stored_key

    def sets(self) -> dict[str, list[PartitionKey]]:
        """Return the added keys by set, each set in the order in which keys were first added."""
        with self._lock:
            return {name: list(keys.values()) for name, keys in self._found.items()}


def runtime_key(definition: PartitionAtRuntime, key: object) -> PartitionKey:
    """Return a value as a key of a set of runtime partitions. Raises PartitionKeyError."""
    checked = PartitionKey.of(key)
    if isinstance(checked, Interval | ProductKey | WholeKey):
        raise PartitionKeyError(
            f"{key!r} is no key of {definition!r}: use a plain value, or a key class with a field"
            " that holds it"
        )
    refuse_long_folder(definition.name, checked)
    return checked
