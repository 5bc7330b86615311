"""The output of an attempt: staged data of each outlet, and discovered keys."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import slicewise
from assets_app.catalogue.texts import storable, storable_json
from assets_app.execution.data.run_locations import RunLocations
from assets_app.execution.queue.outlets import claimed_outlet_ids
from assets_app.models import AttemptOutlet, Run, RunAttempt, RunPartition
from partitions_app.labels import label_of_key
from partitions_app.models import PartitionDefinition
from slicewise.io import WriteMode
from slicewise.keys import key_from_json, key_to_json
from slicewise.partitions import PartitionRow, runtime_key

DiscoveredKeys = list[dict[str, Any]]
"""Keys that a run has added to sets, each as ``{"set": name, "key": the key's JSON}``."""


_ERROR_LENGTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedOutlet:
    """Data of one outlet that waits in ``staging`` to be published below ``root``."""

    asset_id: int
    name_on_disk: str
    # The canonical URI, or the path of a folder.
    root: str
    staging: str
    # {"key", "path", "rows", "bytes"}
    partitions: Sequence[Mapping[str, Any]]
    write_mode: WriteMode = "replace"

    @classmethod
    def nothing(cls, name_on_disk: str, root: str) -> Self:
        """Return an outlet of which only the location is known."""
        return cls(asset_id=0, name_on_disk=name_on_disk, root=root, staging="", partitions=[])


class Output:
    """The output that a runner has reported so far, checked since user code shares the process.

    ``keys`` are the key texts of the run's partitions; None for a run that discovers partitions.
    """

    def __init__(self, run: Run, attempt: RunAttempt, keys: Collection[str] | None) -> None:
        self._run, self._names = run, attempt.disk_names(run.producer_version)
        self._write_mode = run.producer_version.spec.write_mode
        self._roots = run.producer_version.canonical_uris
        self._locations = RunLocations(run, attempt, keys)
        # By outlet and key text.
        self._staged: dict[str, dict[str, dict[str, Any]]] = {}
        self._found: dict[tuple[str, str], Any] = {}
        self.unmade: dict[str, str] = {}
        """Partitions that stay unpublished though others are published: reasons by key text."""

    def compute_locations(self) -> None:
        """Compute the staging locations, with which messages of the runner are compared.

        Raises UnknownLocationError if a location cannot be determined now.
        """
        self._locations.compute_stagings()

    def take_unmade(self, message: Mapping[str, Any]) -> None:
        """Store why partitions are left out of a run that fails and publishes the other partitions.

        Raises ValueError for a partition that the run does not materialize.
        """
        for partition in message["partitions"]:
            self._locations.refuse_foreign_key(partition["key"])
            self.unmade[storable(partition["key"])] = storable(partition["error"])[:_ERROR_LENGTH]

    def take_staged(self, message: Mapping[str, Any]) -> None:
        """Store the partitions of one outlet that the run has written.

        Raises ValueError for an outlet or a partition that the run does not materialize, for a
        location other than the computed one, and for a partition that was named before.
        """
        name = message.get("asset", self._run.asset.name)
        if name not in self._names:
            raise ValueError(f"The run wrote {name!r:.200}, which is no asset of the run.")
        self._locations.refuse_foreign_staging(name, message["staging"])
        staged = self._staged.setdefault(name, {})
        for partition in message["partitions"]:
            key = partition["key"]
            self._locations.refuse_foreign_key(key)
            path = self._locations.checked_path(name, key, partition["path"])
            if key in staged:
                raise ValueError(f"The run wrote the partition {key!r:.200} of {name} twice.")
            staged[key] = {
                "key": key,
                "path": path,
                "rows": partition["rows"],
                "bytes": partition["bytes"],
            }

    def refuse_incomplete(self) -> None:
        """Raise ValueError if the run has written partitions that are not the run's own after all.

        Called when the runner reports that the run has finished, since discovered keys come last.
        """
        for staged in self._staged.values():
            for key in staged:
                self._locations.refuse_not_found(key, self._found)

    def take_found(self, message: Mapping[str, Any]) -> None:
        """Store keys that the run adds to a set.

        Raises ValueError for a value that is not a key of the set, TypeError for a set that is not
        discovered at run time.
        """
        name = message["set"]
        definition = PartitionDefinition.rule_of({"kind": "runtime", "name": name})
        if not isinstance(definition, slicewise.PartitionAtRuntime):
            raise TypeError(f"{name!r:.200} is no set found at run time")
        for content in message["keys"]:
            key = runtime_key(definition, key_from_json(storable_json(content)))
            refuse_another_of_its_text(definition, key)
            self._found[name, key.text] = key_to_json(key)

    @property
    def found(self) -> DiscoveredKeys:
        """The discovered keys, set by set, in the order of discovery."""
        names = sorted({name for name, _ in self._found})
        return [
            {"set": name, "key": content}
            for name in names
            for (set_name, _), content in self._found.items()
            if set_name == name
        ]

    def outlets(self) -> list[StagedOutlet]:
        """Return the staged data by outlet, in the order of the outlets."""
        ids = claimed_outlet_ids(self._run)
        return [
            StagedOutlet(
                asset_id=ids[name],
                name_on_disk=self._names[name],
                # The declared root: the process with user code does not decide where data is
                # published.
                root=self._roots[name],
                staging=self._locations.staging(name),
                partitions=list(self._staged[name].values()),
                write_mode=self._write_mode,
            )
            for name in ids
            if name in self._staged
        ]


def discovered_rows(found_keys: DiscoveredKeys, name: str) -> list[PartitionRow]:
    """Return the discovered keys of one set as rows."""
    texts = [key_from_json(entry["key"]).text for entry in found_keys if entry["set"] == name]
    return [PartitionRow(text, None, None, text, None) for text in texts]


def add_discovered_keys(
    found_keys: DiscoveredKeys, run_id: int, *, only: Collection[str] | None = None
) -> None:
    """Add discovered keys to the sets, in the transaction that records the run.

    With ``only``, other key texts are left out.
    """
    for name, entries in groupby(found_keys, key=lambda entry: entry["set"]):
        keys = [key_from_json(entry["key"]) for entry in entries]
        chosen_keys = [key for key in keys if only is None or key.text in only]
        if chosen_keys:
            row = PartitionDefinition.of({"kind": "runtime", "name": name})
            row.add_keys(((key, label_of_key(key)) for key in chosen_keys), run_id=run_id)


def store_outlets(attempt: RunAttempt, outlets: Iterable[StagedOutlet]) -> None:
    """Store where the data of each outlet waits; the run's partitions complete this record."""
    AttemptOutlet.objects.bulk_create(
        AttemptOutlet(
            attempt=attempt,
            asset_id=outlet.asset_id,
            name_on_disk=outlet.name_on_disk,
            root=outlet.root,
            staging=outlet.staging,
        )
        for outlet in outlets
    )


def stored_outlets(attempt: RunAttempt) -> list[StagedOutlet]:
    """Return the outlets that `keep_outlets` stored, with the partitions that wait."""
    partitions_by_asset: dict[int, list[dict[str, Any]]] = {}
    waiting = RunPartition.objects.filter(run=attempt.run_id, state=RunPartition.State.PENDING)
    rows = waiting.exclude(rows=None)
    for asset_id, key, path, count, size in rows.values_list(
        "partition__asset", "partition__key", "path", "rows", "bytes"
    ):
        partition = {"key": key, "path": path, "rows": count, "bytes": size}
        partitions_by_asset.setdefault(asset_id, []).append(partition)
    write_mode = attempt.run.producer_version.spec.write_mode
    return [
        StagedOutlet(
            asset_id=outlet.asset_id,
            name_on_disk=outlet.name_on_disk,
            root=outlet.root,
            staging=outlet.staging,
            partitions=partitions_by_asset.get(outlet.asset_id, []),
            write_mode=write_mode,
        )
        for outlet in AttemptOutlet.objects.filter(attempt=attempt).order_by("pk")
    ]


def refuse_another_of_its_text(
    definition: slicewise.PartitionAtRuntime, key: slicewise.PartitionKey
) -> None:
    """Raise ValueError if the set has another key with the same text."""
    position = definition.values.positions_by_text.get(key.text)
    other_key = None if position is None else definition.values.keys[position]
    if other_key is not None and other_key != key:
        raise ValueError(
            f"{other_key.value!r} and {key.value!r} would be one partition of {definition.name!r}:"
            f" both have the key text {key.text!r}"
        )
