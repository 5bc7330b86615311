"""Checks at the end of a soak; each check yields the violations."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet

from bench.soak.expected import expected_keys
from bench.soak.record import Record
from partitions_app.rules import has_time
from slicewise.storage import STAGING_PREFIX
from slicewise.uris.canonical import uri_path

# What is killed is back within this.
_BACK_WITHIN = timedelta(seconds=30)
_MARKER = "_slicewise-"


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of the functions: the numbers of starts, and partitions with two runs at once."""

    begun: int
    twice: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> "Marks":
        """Read the marks in the files of a folder."""
        begun, twice = (
            [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
            for file in (folder / "begun", folder / "twice")
        )
        return cls(len(begun), twice)


def backfill_is_made(backfill: Mapping[str, Any]) -> Iterator[str]:
    """Check that the backfill materialized all requested partitions."""
    counts = backfill["counts"]
    if backfill["state"] != "succeeded" or counts["succeeded"] != counts["total"]:
        yield f"backfill {backfill['name']} is {backfill['state']}: {counts}"


def all_ended_well(record: Record) -> Iterator[str]:
    """Check that every run succeeded: no function of the bundle fails by itself."""
    for run in record.failed:
        yield f"run {run.id} of {run.asset} {run.selection} is {run.state}: {run.error}"


def none_missing(record: Record, paused_at: datetime, slowest: timedelta) -> Iterator[str]:
    """Check that every due partition was materialized, and that every schedule ticked until the
    end, no more slowly than ``slowest``.
    """
    for asset in record.assets.values():
        until = asset.handled_until
        if asset.by_time and until is not None and until + slowest + _BACK_WITHIN < paused_at:
            yield f"{asset.name} has not ticked since {until}"
        expected = expected_keys(asset, record, paused_at)
        if not expected and asset.schedule is not None:
            yield f"nothing of {asset.name} came due: the soak was too short to show anything"
        for key in sorted(expected - record.made(asset.name)):
            yield f"missing: {asset.name} {key}"


def none_left_out_by_ticks(record: Record) -> Iterator[str]:
    """Check that every tick queued all due partitions, which only ticks queue in a soak."""
    for asset in record.assets.values():
        if asset.left_out_by_ticks:
            yield f"ticks of {asset.name} left out {asset.left_out_by_ticks} partitions as made"


def none_behind(record: Record) -> Iterator[str]:
    """Check that downstream partitions were materialized again after upstream partitions.

    A window is not materialized again after a new version of an upstream asset without windows.
    """
    for row in record.behind:
        upstream, asset = record.assets[row.upstream], record.assets[row.asset]
        if (asset.name, upstream.name) not in record.mappings:
            continue
        if not has_time(asset.definition) or has_time(upstream.definition):
            yield (
                f"behind: {row.asset} {row.key} was made of {row.upstream} {row.upstream_key}"
                f" v{row.had}, which is v{row.has}"
            )


def none_twice(record: Record, marks: Marks) -> Iterator[str]:
    """Check that no two runs materialized a partition at once, that no partition has more records
    than writes, and that no schedule by time materialized a partition twice.
    """
    for mark in marks.twice:
        yield f"made twice at once: {mark}"
    for partition in record.partitions.values():
        if partition.version != partition.recorded:
            yield (
                f"{partition.asset} {partition.key} has version {partition.version}"
                f" and {partition.recorded} materializations"
            )
        asset = record.assets[partition.asset]
        if asset.by_time and has_time(asset.definition) and partition.version != 1:
            yield f"made {partition.version} times: {partition.asset} {partition.key}"


def record_is_on_disk(record: Record) -> Iterator[str]:
    """Check that the data of every latest materialization exists, written by the recorded run."""
    for partition in record.partitions.values():
        what = f"{partition.asset} {partition.key} v{partition.version} by run {partition.run_id}"
        if partition.root is None or partition.path is None:
            yield f"not on record where it is: {what}"
            continue
        folder = uri_path(partition.root) / partition.path
        if not (folder / f"{_MARKER}{partition.run_id}-{partition.name_on_disk}").exists():
            yield f"not on disk: {what}"
            continue
        runs = {
            run
            for file in folder.glob("*.parquet")
            for run in pyarrow.parquet.read_table(file, columns=["run"])["run"].to_pylist()
        }
        if runs != {partition.run_id}:
            yield f"data of other runs ({sorted(runs)}): {what}"


def disk_is_on_record(record: Record) -> Iterator[str]:
    """Check that every folder with data belongs to a materialization on record."""
    known = {
        uri_path(partition.root)
        / partition.path: f"{_MARKER}{partition.run_id}-{partition.name_on_disk}"
        for partition in record.partitions.values()
        if partition.root is not None and partition.path is not None
    }
    for root in sorted(_roots(record)):
        for folder in sorted({file.parent for file in root.rglob("*.parquet")}):
            if any(name.startswith(_MARKER) for name in folder.relative_to(root.parent).parts):
                continue
            marks = {file.name for file in folder.glob(f"{_MARKER}*")}
            if marks != {known.get(folder, "")}:
                yield f"on disk and not on record: {folder} with {sorted(marks)}"


def left_behind(record: Record) -> Counter[str]:
    """Return the numbers of staging folders that remained, by the folder of the asset."""
    homes = {home for root in _roots(record) for home in (root, root.parent)}
    return Counter(home.name for home in homes for _ in home.glob(f"{STAGING_PREFIX}*"))


def _roots(record: Record) -> set[Path]:
    """Return the folders of the assets that have data."""
    return {
        uri_path(partition.root)
        for partition in record.partitions.values()
        if partition.root is not None
    }
