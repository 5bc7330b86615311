"""Keys that a run adds to sets found at run time (AIP-76, "Runtime partitions")."""

from threading import Lock

from slicewise.by_sequence import PartitionAtRuntime
from slicewise.definitions import PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.folders import refuse_long_folder
from slicewise.intervals import Interval
from slicewise.keys import PartitionKey, ProductKey, WholeKey


class Discoveries:
    """What one run has found, by the name of the set; may be used from all threads of the run.

    A key counts once however often it is added. It becomes visible with the run's success.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[str, PartitionKey]] = {}
        self._lock = Lock()

    def add(self, definition: PartitionDefinition | None, key: object) -> PartitionKey:
        """Add a key, or plain value, to a set.

        Raises DefinitionError where the definition is no `PartitionAtRuntime`, PartitionKeyError
        for what cannot be a key of one.
        """
        if not isinstance(definition, PartitionAtRuntime):
            raise DefinitionError(
                f"{definition!r} has the partitions that it says; only those of a"
                " PartitionAtRuntime are found by runs"
            )
        checked = runtime_key(definition, key)
        with self._lock:
            known = self._found.setdefault(definition.name, {}).setdefault(checked.text, checked)
        if known != checked:
            raise PartitionKeyError(
                f"{known.value!r} and {checked.value!r} would be one partition of"
                f" {definition.name!r}: both have the key text {checked.text!r}"
            )
        return known

    def sets(self) -> dict[str, list[PartitionKey]]:
        """Return the keys that were added, by set, each set in the order of its first addition."""
        with self._lock:
            return {name: list(keys.values()) for name, keys in self._found.items()}


def runtime_key(definition: PartitionAtRuntime, key: object) -> PartitionKey:
    """Return the key that a value is in a set found at run time. Raises PartitionKeyError."""
    checked = PartitionKey.of(key)
    if isinstance(checked, Interval | ProductKey | WholeKey):
        raise PartitionKeyError(
            f"{key!r} is no key of {definition!r}: use a plain value, or a key class with a field"
            " that holds it"
        )
    refuse_long_folder(definition.name, checked)
    return checked
