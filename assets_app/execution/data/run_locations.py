"""The locations where the data of a run is staged, computed from the run's own keys.

The runner computes the same locations, and user code shares the runner's process: a folder that the
runner names is compared with the computed one, and never used.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import slicewise
from assets_app.execution.data.data_files import storage_of
from assets_app.models import Run, RunAttempt
from slicewise.io import Storage, Writer, find_storage
from slicewise.keys import WHOLE


class UnknownLocationError(RuntimeError):
    """The locations of an outlet cannot be determined here. A failure of the platform."""


class RunLocations:
    """The staging folders and the partitions' paths of one attempt."""

    def __init__(self, run: Run, attempt: RunAttempt, keys: Collection[str] | None) -> None:
        """Prepare the locations for partitions with the key texts ``keys``; None to
        discover some.
        """
        version = run.producer_version
        self._writers = {
            name: Writer(run_id=run.pk, attempt=disk_name, fence=attempt.fence)
            for name, disk_name in attempt.disk_names(version).items()
        }
        self._uris = version.canonical_uris
        # Outlets share one way of partitioning.
        self._spec = version.spec.partition_of(run.asset.name)
        self._keys = None if keys is None else frozenset(keys)
        self._stagings = dict[str, str]()

    def refuse_foreign_key(self, key: str) -> None:
        """Raise ValueError for a key text that belongs to no partition of the run.

        A run that discovers partitions may name any key: `refuse_not_found` checks the keys at the
        end of the run.
        """
        if self._keys is not None and key not in self._keys:
            raise ValueError(
                f"The run wrote the partition {key!r:.200}, which the run does not cover."
            )

    def refuse_not_found(self, key: str, added_keys: Mapping[tuple[str, str], Any]) -> None:
        """Raise ValueError for a partition that a discovering run has written and not added.

        ``added_keys`` has keys by the name of the set and the key text.
        """
        definition = self._definition
        name = definition.name if isinstance(definition, slicewise.PartitionAtRuntime) else ""
        if self._keys is None and (name, key) not in added_keys:
            raise ValueError(
                f"The run wrote the partition {key!r:.200}, which the run did not add."
            )

    def refuse_foreign_staging(self, outlet: str, staging: str) -> None:
        """Raise ValueError for a staging folder that is not the attempt's own."""
        if staging != self.staging(outlet):
            raise ValueError(
                f"The run reports that {outlet} is staged at {staging!r:.300}, which is not the"
                " staging of the attempt."
            )

    def checked_path(self, outlet: str, key: str, reported: str) -> str:
        """Return the partition's path. Raises ValueError if the run has reported another path."""
        path = self.path(outlet, key)
        if reported != path:
            raise ValueError(
                f"The run reports the partition {key!r:.200} of {outlet} at {reported!r:.300},"
                " which is not the folder of the partition."
            )
        return path

    def compute_stagings(self) -> None:
        """Compute the staging location of each outlet before user code begins.

        Later, when the data is there, it may be impossible to determine a location. Raises
        PlacesUnknownError if a location cannot be determined now.
        """
        for outlet in self._writers:
            if find_storage(self._uris[outlet]) is not None:
                self.staging(outlet)

    def staging(self, outlet: str) -> str:
        """Return the staging location of an outlet.

        Raises ValueError for an outlet without a storage here, PlacesUnknownError if the location
        cannot be determined.
        """
        if outlet not in self._stagings:
            self._class_of(outlet)
            writer, is_partitioned = self._writers[outlet], self._definition is not None
            try:
                storage = storage_of(self._uris[outlet])
                self._stagings[outlet] = storage.staging(writer, partitioned=is_partitioned)
            except Exception as error:
                raise UnknownLocationError(
                    f"Slicewise cannot determine where the data of {outlet} is staged: {error}"
                ) from error
        return self._stagings[outlet]

    def path(self, outlet: str, key: str) -> str:
        """Return the folder of a partition, relative to the asset's folder.

        Raises PartitionKeyError for a text that is no key.
        """
        definition = self._definition
        parsed = WHOLE if definition is None else definition.parse(key)
        return self._class_of(outlet).partition_path(definition, parsed)

    def _class_of(self, outlet: str) -> type[Storage]:
        cls = find_storage(self._uris[outlet])
        if cls is None:
            raise ValueError(f"The run wrote {outlet}, and no storage here serves the URI.")
        return cls

    @cached_property
    def _definition(self) -> slicewise.PartitionDefinition | None:
        """The definition as the runner gets it: without known keys, which may be fewer by now."""
        return None if self._spec is None else slicewise.PartitionDefinition.from_json(self._spec)
