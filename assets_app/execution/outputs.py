"""What an attempt has made: data that is staged for each outlet, and keys that it has found."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import slicewise
from assets_app.catalogue.texts import storable, storable_json
from assets_app.execution.outlets import claimed_outlet_ids
from assets_app.execution.run_places import RunPlaces
from assets_app.models import AttemptOutlet, Run, RunAttempt, RunPartition
from partitions_app.labels import label_of_key
from partitions_app.models import PartitionDefinition
from slicewise.discovery import runtime_key
from slicewise.key_json import key_from_json, key_to_json
from slicewise.options import WriteMode
from slicewise.rows import PartitionRow

Found = list[dict[str, Any]]
"""Keys that a run has added to sets: ``{"set": name, "key": the key's JSON}`` each."""


_MOST_SAID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedOutlet:
    """Data of one outlet, as it waits below ``staging`` to be put below ``root``."""

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
        """An outlet of which no more is known than its place."""
        return cls(asset_id=0, name_on_disk=name_on_disk, root=root, staging="", partitions=[])


class Output:
    """What a runner has said of its output so far. User code shares its process: all is checked.

    ``keys`` are the key texts of the run's partitions; None for a run that discovers some.
    """

    def __init__(self, run: Run, attempt: RunAttempt, keys: Collection[str] | None) -> None:
        self._run, self._names = run, attempt.disk_names(run.producer_version)
        self._write_mode = run.producer_version.write_mode
        self._roots = run.producer_version.canonical_uris
        self._places = RunPlaces(run, attempt, keys)
        # By outlet and key text.
        self._staged: dict[str, dict[str, dict[str, Any]]] = {}
        self._found: dict[tuple[str, str], Any] = {}
        self.unmade: dict[str, str] = {}
        """Keys of partitions that are not to be published though others are, with the reasons."""

    def compute_places(self) -> None:
        """Tell where data will wait, which is compared with what the runner says. Raises
        PlacesUnknownError where that cannot be told now.
        """
        self._places.compute_stagings()

    def take_unmade(self, message: Mapping[str, Any]) -> None:
        """The run fails, and keeps what else it has written. Raises ValueError for a partition that
        it does not make.
        """
        for piece in message["partitions"]:
            self._places.refuse_foreign_key(piece["key"])
            self.unmade[storable(piece["key"])] = storable(piece["error"])[:_MOST_SAID]

    def take_staged(self, message: Mapping[str, Any]) -> None:
        """Partitions of one outlet are written.

        Raises ValueError for an outlet or a partition that the run does not make, for a place that
        is not the one computed here, and for a partition that was named before.
        """
        name = message.get("asset", self._run.asset.name)
        if name not in self._names:
            raise ValueError(f"The run wrote {name!r:.200}, which it does not make.")
        self._places.refuse_foreign_staging(name, message["staging"])
        staged = self._staged.setdefault(name, {})
        for piece in message["partitions"]:
            key = piece["key"]
            self._places.refuse_foreign_key(key)
            path = self._places.checked_path(name, key, piece["path"])
            if key in staged:
                raise ValueError(f"The run wrote the partition {key!r:.200} of {name} twice.")
            staged[key] = {"key": key, "path": path, "rows": piece["rows"], "bytes": piece["bytes"]}

    def refuse_incomplete(self) -> None:
        """Raise ValueError where the run has written partitions that are not its own after all.

        Asked when the run says that it has finished: keys that it has found come last.
        """
        for staged in self._staged.values():
            for key in staged:
                self._places.refuse_not_found(key, self._found)

    def take_found(self, message: Mapping[str, Any]) -> None:
        """Keys were added to a set. Raises ValueError for what is no key of it."""
        name = message["set"]
        rule = PartitionDefinition.rule_of({"kind": "runtime", "name": name})
        if not isinstance(rule, slicewise.PartitionAtRuntime):
            raise TypeError(f"{name!r:.200} is no set found at run time")
        for content in message["keys"]:
            key = runtime_key(rule, key_from_json(storable_json(content)))
            refuse_another_of_its_text(rule, key)
            self._found[name, key.text] = key_to_json(key)

    @property
    def found(self) -> Found:
        """The keys, in the order in which they were found, set by set."""
        names = sorted({name for name, _ in self._found})
        return [
            {"set": name, "key": content}
            for name in names
            for (of, _), content in self._found.items()
            if of == name
        ]

    def outlets(self) -> list[StagedOutlet]:
        """The data, by outlet, in the order of the outlets."""
        ids = claimed_outlet_ids(self._run)
        return [
            StagedOutlet(
                asset_id=ids[name],
                name_on_disk=self._names[name],
                # As declared: the process in which user code runs does not say where to publish.
                root=self._roots[name],
                staging=self._places.staging(name),
                partitions=list(self._staged[name].values()),
                write_mode=self._write_mode,
            )
            for name in ids
            if name in self._staged
        ]


def found_rows(found: Found, name: str) -> list[PartitionRow]:
    """The keys of one set as rows."""
    texts = [key_from_json(entry["key"]).text for entry in found if entry["set"] == name]
    return [PartitionRow(text, None, None, text, None) for text in texts]


def add_found(found: Found, run_id: int, *, only: Collection[str] | None = None) -> None:
    """Add the keys to their sets, in the transaction that records the run; ``only`` those texts."""
    for name, entries in groupby(found, key=lambda entry: entry["set"]):
        keys = [key_from_json(entry["key"]) for entry in entries]
        wanted = [key for key in keys if only is None or key.text in only]
        if wanted:
            row = PartitionDefinition.of({"kind": "runtime", "name": name})
            row.add_keys(((key, label_of_key(key)) for key in wanted), run_id=run_id)


def keep_outlets(attempt: RunAttempt, outlets: Iterable[StagedOutlet]) -> None:
    """Write down where the data waits; with the run's partitions, that is all of it."""
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


def kept_outlets(attempt: RunAttempt) -> list[StagedOutlet]:
    """What `keep_outlets` wrote, with the partitions that wait."""
    pieces: dict[int, list[dict[str, Any]]] = {}
    waiting = RunPartition.objects.filter(run=attempt.run_id, state=RunPartition.State.PENDING)
    rows = waiting.exclude(rows=None)
    for asset_id, key, path, count, size in rows.values_list(
        "slice__asset", "slice__key", "path", "rows", "bytes"
    ):
        piece = {"key": key, "path": path, "rows": count, "bytes": size}
        pieces.setdefault(asset_id, []).append(piece)
    write_mode = attempt.run.producer_version.write_mode
    return [
        StagedOutlet(
            asset_id=outlet.asset_id,
            name_on_disk=outlet.name_on_disk,
            root=outlet.root,
            staging=outlet.staging,
            partitions=pieces.get(outlet.asset_id, []),
            write_mode=write_mode,
        )
        for outlet in AttemptOutlet.objects.filter(attempt=attempt).order_by("pk")
    ]


def refuse_another_of_its_text(
    rule: slicewise.PartitionAtRuntime, key: slicewise.PartitionKey
) -> None:
    """Raises ValueError where the set has another key of the same text."""
    place = rule.values.places.get(key.text)
    known = None if place is None else rule.values.keys[place]
    if known is not None and known != key:
        raise ValueError(
            f"{known.value!r} and {key.value!r} would be one partition of {rule.name!r}:"
            f" both have the key text {key.text!r}"
        )
