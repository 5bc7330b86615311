"""Two workers at one publication: a worker that was taken for lost wakes up beside its successor.

Each worker is stopped before each of its changes of the file system, in every combination. The
successor always succeeds; the late worker changes nothing afterwards, and gets an error.
"""

import os
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from slicewise.storage import (
    StagingLostError,
    TryAgainError,
    check,
    discard,
    exchange,
    published,
    versions,
)
from tests.runtime.folder_asset import DAY_PATHS, Lake
from tests.runtime.stepped_worker import SteppedWorker, asking_first

# Not the links to files: they lie in a folder that nobody else finds.
CHANGES = ("rename", "symlink", "mkdir", "unlink")


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask workers before each change; no worker waits for the lock of a stopped worker."""
    for name in CHANGES:
        monkeypatch.setattr(os, name, asking_first(getattr(os, name)))
    monkeypatch.setattr(exchange, "_renameat2", asking_first(exchange._renameat2))
    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.0)


def lake_with(folder: Path, mode: str, paths: list[str]) -> tuple[Lake, Path]:
    """Return an asset with data of run 1, and the staged data of run 2."""
    lake = Lake(folder / "a", mode, paths)
    lake.write(1, "one")
    return lake, lake.stage(2, "two")


MODES = pytest.mark.parametrize("mode", ["replace", "append", "version"])
PATHS = pytest.mark.parametrize("paths", [DAY_PATHS, ["."]], ids=["partitions", "whole"])


def expected(mode: str, *texts: str) -> list[str]:
    return sorted(texts) if mode == "append" else [texts[-1]]


@PATHS
@MODES
def test_a_late_worker_beside_its_successor_neither_stops_it_nor_changes_its_data(
    tmp_path: Path, mode: str, paths: list[str]
) -> None:
    number = count()
    for late_step in count(1):
        for step in count(1):
            lake, staging = lake_with(tmp_path / str(next(number)), mode, paths)
            late = SteppedWorker(partial(lake.publish, staging, 2, fence=1), late_step)
            is_late = late.reach()
            successor = SteppedWorker(partial(lake.publish, staging, 2, fence=2), step)
            is_paused = successor.reach()
            late.end()
            successor.end()
            case = (late_step, step, late.error)
            assert successor.error is None, case
            assert late.error is None or isinstance(late.error, StagingLostError), case
            assert lake.content() == dict.fromkeys(paths, expected(mode, "one", "two")), case
            if mode == "version":
                assert all(versions(lake.root, path) == [1, 2] for path in paths), case
            if not is_paused:
                break
        if not is_late:
            break
    assert late_step > 2


@PATHS
@MODES
def test_a_late_worker_changes_nothing_of_newer_data(
    tmp_path: Path, mode: str, paths: list[str]
) -> None:
    for step in count(1):
        lake, staging = lake_with(tmp_path / str(step), mode, paths)
        late = SteppedWorker(partial(lake.publish, staging, 2, fence=1), step)
        is_late = late.reach()
        lake.publish(staging, 2, fence=2)
        lake.write(3, "three")
        late.end()
        assert lake.content() == dict.fromkeys(paths, expected(mode, "one", "two", "three")), step
        if mode == "version":
            assert all(versions(lake.root, path) == [1, 2, 3] for path in paths), step
        if not is_late:
            break
        # Told, unless all that it was to do was done before it was stopped.
        assert late.error is None or isinstance(late.error, StagingLostError), step
    assert step > 2


@MODES
def test_a_worker_that_begins_after_its_successor_is_told_and_takes_nothing_back(
    tmp_path: Path, mode: str
) -> None:
    lake, staging = lake_with(tmp_path, mode, DAY_PATHS)
    successor = SteppedWorker(partial(lake.publish, staging, 2, fence=2), 3)
    assert successor.reach()
    with pytest.raises(StagingLostError, match="another worker has taken over"):
        lake.publish(staging, 2, fence=1)
    with pytest.raises(StagingLostError, match="another worker has taken over"):
        check(
            str(lake.root), str(staging), [{"path": DAY_PATHS[0]}], run_id=2, attempt="1-a", fence=1
        )
    successor.end()
    assert successor.error is None
    assert lake.content() == dict.fromkeys(DAY_PATHS, expected(mode, "one", "two"))


@PATHS
@MODES
def test_a_publication_that_is_given_up_is_not_finished_by_a_late_worker(
    tmp_path: Path, mode: str, paths: list[str]
) -> None:
    """The successor looked at the publication, and failed for another asset of the run."""
    for step in count(1):
        lake, staging = lake_with(tmp_path / str(step), mode, paths)
        late = SteppedWorker(partial(lake.publish, staging, 2, fence=1), step)
        is_late = late.reach()
        pieces = [{"path": path} for path in paths]
        check(str(lake.root), str(staging), pieces, run_id=2, attempt="1-a", fence=2)
        recorded = published(str(lake.root), paths, run_id=2, attempt="1-a")
        late.end()
        discard(str(lake.root), run_id=2, attempt="1-a")
        assert published(str(lake.root), paths, run_id=2, attempt="1-a") == recorded, step
        contents = {path: expected(mode, "one", *["two"] * (path in recorded)) for path in paths}
        assert lake.content() == contents, step
        if mode == "version":
            version_lists = {path: [1, 2][: 1 + (path in recorded)] for path in paths}
            assert {path: versions(lake.root, path) for path in paths} == version_lists, step
        assert not list(lake.root.parent.rglob("_slicewise-staging*")), step
        assert not list(lake.root.parent.rglob("_slicewise-links*")), step
        if not is_late:
            break
    assert step > 2


@PATHS
def test_files_of_a_late_spark_task_under_the_first_name_do_not_block_publishing(
    tmp_path: Path, paths: list[str]
) -> None:
    lake, staging = lake_with(tmp_path, "replace", paths)
    pieces = [{"path": path} for path in paths]
    check(str(lake.root), str(staging), pieces, run_id=2, attempt="1-a", fence=2)
    (staging / "_temporary" / "0").mkdir(parents=True)
    lake.publish(staging, 2, fence=3)
    assert lake.content() == dict.fromkeys(paths, expected("replace", "two"))
    assert not list(lake.root.parent.rglob("_slicewise-staging*"))


def test_remains_of_a_crash_between_renaming_and_removing_are_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, _ = lake_with(tmp_path, "replace", DAY_PATHS)
    with monkeypatch.context() as patched:
        for name in ("fencing", "publishing"):
            patched.setattr(f"slicewise.storage.{name}.remove", lambda folder: None)
        with pytest.raises(TryAgainError, match=r"_slicewise-discarded-2-1-a-.* could not be"):
            discard(str(lake.root), run_id=2, attempt="1-a")
    assert list(lake.root.glob("_slicewise-discarded-*"))
    lake.stage(22, "another run's")
    discard(str(lake.root), run_id=2, attempt="1-a")
    leftovers = [entry.name for entry in lake.root.glob("_slicewise-*")]
    assert leftovers == ["_slicewise-staging-22-1-a-1"]
