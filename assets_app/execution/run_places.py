"""Where the data of a run waits, computed from the run's own keys.

The runner computes the same, and user code shares its process: its word for a folder is compared
with this, and never used.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import slicewise
from assets_app.execution.data_files import storage_of
from assets_app.models import Run, RunAttempt
from slicewise.io import Storage, Writer, find_storage
from slicewise.keys import WHOLE


class PlacesUnknownError(RuntimeError):
    """The places of an outlet cannot be told here. A failure of the platform."""


class RunPlaces:
    """Staging folders and partitions' paths of one attempt."""

    def __init__(self, run: Run, attempt: RunAttempt, keys: Collection[str] | None) -> None:
        """``keys`` are the key texts of the partitions; None for a run that discovers some."""
        version = run.producer_version
        self._writers = {
            name: Writer(run_id=run.pk, attempt=disk_name, fence=attempt.fence)
            for name, disk_name in attempt.disk_names(version).items()
        }
        self._uris = version.canonical_uris
        # Outlets share one way of partitioning.
        self._spec = version.partition_of(run.asset.name)
        self._keys = None if keys is None else frozenset(keys)
        self._stagings = dict[str, str]()

    def refuse_foreign_key(self, key: str) -> None:
        """Raise ValueError for the key text of no partition of the run.

        A run that discovers partitions may name any: `refuse_not_found` looks at them at its end.
        """
        if self._keys is not None and key not in self._keys:
            raise ValueError(f"The run wrote the partition {key!r:.200}, which it does not make.")

    def refuse_not_found(self, key: str, found: Mapping[tuple[str, str], Any]) -> None:
        """Raise ValueError for a partition that a discovering run has written and not added.

        ``found`` has the added keys by the name of their set and their text.
        """
        of = self._definition
        name = of.name if isinstance(of, slicewise.PartitionAtRuntime) else ""
        if self._keys is None and (name, key) not in found:
            raise ValueError(f"The run wrote the partition {key!r:.200}, which it did not add.")

    def refuse_foreign_staging(self, outlet: str, staging: str) -> None:
        """Raise ValueError for a staging folder that is not the attempt's own."""
        if staging != self.staging(outlet):
            raise ValueError(
                f"The run says that {outlet} waits at {staging!r:.300}, which is no place of its"
                " own."
            )

    def checked_path(self, outlet: str, key: str, said: str) -> str:
        """Return the partition's path. Raises ValueError where the run has said another one."""
        path = self.path(outlet, key)
        if said != path:
            raise ValueError(
                f"The run says that the partition {key!r:.200} of {outlet} is at {said!r:.300},"
                " which is not its folder."
            )
        return path

    def compute_stagings(self) -> None:
        """Tell now where the data of each outlet will wait: before the code begins, since it may be
        that it cannot be told when the data is there. Raises PlacesUnknownError.
        """
        for outlet in self._writers:
            if find_storage(self._uris[outlet]) is not None:
                self.staging(outlet)

    def staging(self, outlet: str) -> str:
        """Return where the data of an outlet waits. Raises ValueError for an outlet whose data
        nothing here keeps, PlacesUnknownError where it cannot be told.
        """
        if outlet not in self._stagings:
            self._class_of(outlet)
            writer, is_partitioned = self._writers[outlet], self._definition is not None
            try:
                storage = storage_of(self._uris[outlet])
                self._stagings[outlet] = storage.staging(writer, partitioned=is_partitioned)
            except Exception as error:
                raise PlacesUnknownError(
                    f"it cannot be told where the data of {outlet} waits: {error}"
                ) from error
        return self._stagings[outlet]

    def path(self, outlet: str, key: str) -> str:
        """Return the folder of a partition, relative to the asset's. Raises PartitionKeyError for
        the text of no key.
        """
        definition = self._definition
        parsed = WHOLE if definition is None else definition.parse(key)
        return self._class_of(outlet).partition_path(definition, parsed)

    def _class_of(self, outlet: str) -> type[Storage]:
        cls = find_storage(self._uris[outlet])
        if cls is None:
            raise ValueError(f"The run wrote {outlet}, and nothing here keeps data at its URI.")
        return cls

    @cached_property
    def _definition(self) -> slicewise.PartitionDefinition | None:
        """As the runner is told: without the keys known to a set, which may be fewer by now."""
        return None if self._spec is None else slicewise.PartitionDefinition.from_json(self._spec)
