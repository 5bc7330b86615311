"""What has to hold at the end of a soak; each check names what does not."""

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
    """What the functions have left: how often they began, and what was made twice at once."""

    begun: int
    twice: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> "Marks":
        """The marks in the files of this folder."""
        begun, twice = (
            [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
            for file in (folder / "begun", folder / "twice")
        )
        return cls(len(begun), twice)


def backfill_is_made(backfill: Mapping[str, Any]) -> Iterator[str]:
    """The backfill has made all that it was asked for."""
    counts = backfill["counts"]
    if backfill["state"] != "succeeded" or counts["succeeded"] != counts["total"]:
        yield f"backfill {backfill['name']} is {backfill['state']}: {counts}"


def all_ended_well(record: Record) -> Iterator[str]:
    """No function of the bundle fails: every run has to succeed, whatever is killed."""
    for run in record.failed:
        yield f"run {run.id} of {run.asset} {run.selection} is {run.state}: {run.error}"


def none_missing(record: Record, paused_at: datetime, slowest: timedelta) -> Iterator[str]:
    """Every partition that came due was made, and schedules went on to the end: none ticks more
    slowly than ``slowest``.
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
    """Every tick queued all that it was about: in a soak nothing but ticks makes what they make."""
    for asset in record.assets.values():
        if asset.left_out_by_ticks:
            yield f"ticks of {asset.name} left out {asset.left_out_by_ticks} partitions as made"


def none_behind(record: Record) -> Iterator[str]:
    """What follows was made again with what it follows.

    A window that is made when an upstream asset without windows is made is not made again with it.
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
    """No partition was made by two runs at once, none on record more often than it was made, and
    none by a schedule by time more than once.
    """
    for mark in marks.twice:
        yield f"made twice at once: {mark}"
    for piece in record.slices.values():
        if piece.version != piece.recorded:
            yield (
                f"{piece.asset} {piece.key} has version {piece.version}"
                f" and {piece.recorded} materializations"
            )
        asset = record.assets[piece.asset]
        if asset.by_time and has_time(asset.definition) and piece.version != 1:
            yield f"made {piece.version} times: {piece.asset} {piece.key}"


def record_is_on_disk(record: Record) -> Iterator[str]:
    """The data of every latest materialization is there, and is that run's."""
    for piece in record.slices.values():
        what = f"{piece.asset} {piece.key} v{piece.version} by run {piece.run_id}"
        if piece.root is None or piece.path is None:
            yield f"not on record where it is: {what}"
            continue
        folder = uri_path(piece.root) / piece.path
        if not (folder / f"{_MARKER}{piece.run_id}-{piece.name_on_disk}").exists():
            yield f"not on disk: {what}"
            continue
        runs = {
            run
            for file in folder.glob("*.parquet")
            for run in pyarrow.parquet.read_table(file, columns=["run"])["run"].to_pylist()
        }
        if runs != {piece.run_id}:
            yield f"data of other runs ({sorted(runs)}): {what}"


def disk_is_on_record(record: Record) -> Iterator[str]:
    """Every folder with data is that of a materialization on record."""
    known = {
        uri_path(piece.root) / piece.path: f"{_MARKER}{piece.run_id}-{piece.name_on_disk}"
        for piece in record.slices.values()
        if piece.root is not None and piece.path is not None
    }
    for root in sorted(_roots(record)):
        for folder in sorted({file.parent for file in root.rglob("*.parquet")}):
            if any(part.startswith(_MARKER) for part in folder.relative_to(root.parent).parts):
                continue
            marks = {file.name for file in folder.glob(f"{_MARKER}*")}
            if marks != {known.get(folder, "")}:
                yield f"on disk and not on record: {folder} with {sorted(marks)}"


def left_behind(record: Record) -> Counter[str]:
    """Folders that attempts have staged data in and nobody has removed, by their asset's."""
    homes = {home for root in _roots(record) for home in (root, root.parent)}
    return Counter(home.name for home in homes for _ in home.glob(f"{STAGING_PREFIX}*"))


def _roots(record: Record) -> set[Path]:
    """The folders of the assets that have data."""
    return {uri_path(piece.root) for piece in record.slices.values() if piece.root is not None}
