"""Append and version modes: each attempt's data is there once, after any interruption."""

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slicewise import storage
from slicewise.storage import (
    MissingVersionError,
    StagingLostError,
    check,
    exchange,
    modes,
    published,
    versions,
)
from slicewise.storage.layout import version_of
from tests.runtime.folder_asset import DAY_PATHS, Lake


def killed_at(step: int, act: Callable[[], Any]) -> bool:
    """Return whether a process that acts was killed before its n-th change of the file system."""
    child = os.fork()
    if child == 0:
        remaining = step

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                nonlocal remaining
                remaining -= 1
                if remaining == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)

            return call

        for name in ("rename", "symlink", "link", "mkdir", "rmdir", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        exchange._renameat2 = counted(exchange._renameat2)
        try:
            act()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def test_appending_adds_files_and_keeps_those_that_are_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "append")
    first = (lake.write(1, "one"), (tmp_path / "a/day=1/part-1-1-a.csv").stat().st_ino)[1]
    lake.write(2, "two")
    assert lake.content() == {"day=1": ["one", "two"], "day=2": ["one", "two"]}
    assert (tmp_path / "a/day=1/part-1-1-a.csv").stat().st_ino == first, "copied, not linked"
    assert (tmp_path / "a/day=1/_slicewise-schema.json").read_text() == "two"
    assert published(str(lake.root), DAY_PATHS, run_id=1, attempt="1-a") == DAY_PATHS
    assert published(str(lake.root), DAY_PATHS, run_id=2, attempt="1-a") == DAY_PATHS
    assert not list(lake.root.glob("_slicewise*"))


def test_an_attempt_that_is_published_again_adds_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "append")
    staging = lake.stage(1, "one")
    for fence in (1, 2, 3, 1):
        lake.publish(staging, 1, fence=fence)
    assert lake.content() == {"day=1": ["one"], "day=2": ["one"]}


def test_another_attempt_at_a_run_replaces_what_an_earlier_one_has_added(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "append")
    lake.write(1, "one")
    lake.write(2, "two")
    again = lake.stage(2, "two again", attempt="2-b")
    lake.publish(again, 2, attempt="2-b", earlier=["1-a"])
    assert lake.content()["day=1"] == ["one", "two again"]
    assert published(str(lake.root), DAY_PATHS, run_id=2, attempt="1-a") == []


@pytest.mark.parametrize("paths", [DAY_PATHS, ["."]])
@pytest.mark.parametrize("mode", ["append", "version"])
def test_a_publication_killed_anywhere_is_finished_once_by_the_next(
    tmp_path: Path, mode: str, paths: list[str]
) -> None:
    step = 0
    is_killed = True
    while is_killed:
        step += 1
        lake = Lake(tmp_path / str(step) / "a", mode, paths)
        Lake(lake.root, "replace", paths).write(1, "old")
        staging = lake.stage(2, "new")
        is_killed = killed_at(step, partial(lake.publish, staging, 2, fence=2))
        pieces = [{"path": path} for path in paths]
        check(str(lake.root), str(staging), pieces, run_id=2, attempt="1-a", fence=3)
        lake.publish(staging, 2, fence=3)
        expected = ["new", "old"] if mode == "append" else ["new"]
        assert lake.content() == dict.fromkeys(paths, expected), step
        if mode == "version":
            assert {version_of(lake.root, path) for path in paths} == {2}
            assert all(versions(lake.root, path) == [1, 2] for path in paths), step
        assert not list(lake.root.parent.rglob("_slicewise-staging*")), step
        assert not list(lake.root.parent.rglob("_slicewise-links*")), step
    assert step > 5


@pytest.mark.parametrize("paths", [["day=1"], ["."]])
def test_a_worker_that_wakes_up_late_links_no_older_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    lake = Lake(tmp_path / "a", "version", paths)
    lake.write(1, "one")
    staging = lake.stage(2, "two")
    real = exchange.put_in_place

    def asleep(source: Path, target: Path) -> bool:
        monkeypatch.setattr(modes, "put_in_place", real)
        lake.publish(staging, 2, fence=2)
        lake.write(3, "three")
        return real(source, target)

    monkeypatch.setattr(modes, "put_in_place", asleep)
    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.1)
    with pytest.raises(StagingLostError):
        lake.publish(staging, 2, fence=1)
    assert lake.content() == {paths[0]: ["three"]}
    assert versions(lake.root, paths[0]) == [1, 2, 3]


def test_a_worker_that_wakes_up_late_appends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "a", "append", ["day=1"])
    lake.write(1, "one")
    staging = lake.stage(2, "two")
    real = exchange.put_in_place

    def asleep(source: Path, target: Path) -> bool:
        monkeypatch.setattr(modes, "put_in_place", real)
        lake.publish(staging, 2, fence=2)
        lake.write(3, "three")
        return real(source, target)

    monkeypatch.setattr(modes, "put_in_place", asleep)
    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.1)
    with pytest.raises(StagingLostError):
        lake.publish(staging, 2, fence=1)
    assert lake.content() == {"day=1": ["one", "three", "two"]}


def test_one_that_joins_while_another_does_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "a", "append", ["day=1"])
    lake.write(1, "one")
    staging, other_staging = lake.stage(2, "two"), lake.stage(3, "three")
    real = exchange.put_in_place

    def asleep(source: Path, target: Path) -> bool:
        monkeypatch.setattr(modes, "put_in_place", real)
        lake.publish(other_staging, 3, fence=2)  # of another asset, with the same uri
        return real(source, target)

    monkeypatch.setattr(modes, "put_in_place", asleep)
    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.1)
    lake.publish(staging, 2, fence=1)
    assert lake.content() == {"day=1": ["one", "three", "two"]}


def test_half_of_what_is_taken_from_one_that_still_joins_is_not_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another partition is appended to, which waits no longer for the lock, in mid-join."""
    lake, beside = (Lake(tmp_path / "a", "append", [path]) for path in DAY_PATHS)
    for number in (1, 2, 3):
        lake.write(number, f"old {number}")
    staging, other_staging = lake.stage(4, "new"), beside.stage(5, "beside")
    real_link, real_remove = os.link, shutil.rmtree

    def asleep(source: Path, target: Path, **options: Any) -> None:
        real_link(source, target, **options)
        monkeypatch.setattr(os, "link", real_link)

        def remove(folder: Path, **options: Any) -> None:
            if not folder.name.startswith(("_joined-", "_taken-")):
                return real_remove(folder, **options)
            for entry in os.scandir(folder):
                os.unlink(entry)
            with suppress(FileNotFoundError):  # who joins goes on, if it finds its folder
                (target.parent / "part-late").write_text("late")
            with suppress(OSError):
                os.rmdir(folder)

        with monkeypatch.context() as patched:
            patched.setattr(shutil, "rmtree", remove)
            beside.publish(other_staging, 5, fence=2)

    monkeypatch.setattr(os, "link", asleep)
    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.1)
    lake.publish(staging, 4, fence=1)
    assert lake.content() == {"day=1": ["new", "old 1", "old 2", "old 3"]}
    assert beside.content() == {"day=2": ["beside"]}


def test_where_files_cannot_be_linked_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **options: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    lake = Lake(tmp_path / "a", "append")
    lake.write(1, "one")
    monkeypatch.setattr(os, "link", refuse)
    lake.write(2, "two")
    assert lake.content()["day=2"] == ["one", "two"]


@pytest.mark.parametrize("paths", [DAY_PATHS, ["."]])
def test_every_version_stays_and_the_latest_is_the_partition(
    tmp_path: Path, paths: list[str]
) -> None:
    lake = Lake(tmp_path / "lake" / "a", "version", paths)
    answers = [lake.write(number, f"v{number}") for number in (1, 2, 3)]
    assert answers == [{path: {"version": number} for path in paths} for number in (1, 2, 3)]
    assert lake.content() == {path: ["v3"] for path in paths}
    for number in (1, 2, 3):
        root, places = storage.folders_to_read(lake.root, paths, version=number)
        files = [next((root / place).glob("part-*")) for place in places]
        assert {file.read_text() for file in files} == {f"v{number}"}
    with pytest.raises(MissingVersionError, match="the versions are 1, 2, 3"):
        storage.folders_to_read(lake.root, paths, version=4)
    # The whole lake can be moved: the links are relative.
    (tmp_path / "lake").rename(tmp_path / "moved")
    lake.root = tmp_path / "moved" / "a"
    assert lake.content() == {path: ["v3"] for path in paths}


def test_a_version_that_is_read_is_not_touched_by_the_next(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "version")
    lake.write(1, "v1")
    root, places = storage.folders_to_read(lake.root, DAY_PATHS)
    planned = [next((root / place).glob("part-*")) for place in places]
    lake.write(2, "v2")
    assert [file.read_text() for file in planned] == ["v1", "v1"]


def test_an_asset_may_change_its_mode(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "version", ["day=1"])
    for run_id, mode in enumerate(["version", "replace", "version", "append", "version"], start=1):
        lake.mode = mode
        lake.write(run_id, f"{run_id}")
    assert lake.content() == {"day=1": ["5"]}
    texts_by_version = {
        number: sorted(file.read_text() for file in folder.glob("part-*"))
        for number in versions(lake.root, "day=1")
        for folder in [lake.root / "_slicewise-versions/day=1" / str(number)]
    }
    assert texts_by_version == {1: ["1"], 2: ["2"], 3: ["3"], 4: ["3", "4"], 5: ["5"]}
