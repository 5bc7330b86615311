"""Publishing: new data replaces old data once, after any interruption."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from slicewise.storage import (
    StagingLostError,
    StorageError,
    discard,
    escape,
    marker_name,
    partition_folder,
    publish,
    published,
    staging_path,
    unescape,
)

ATTEMPT = "1-0123456789ab"


def stage(
    root: Path,
    paths: list[str],
    *,
    run_id: int = 1,
    attempt: str = ATTEMPT,
    fence: int = 1,
    text: str,
) -> tuple[Path, list[dict[str, str]]]:
    partitioned = paths != ["."]
    staging = staging_path(root, run_id, attempt, fence, partitioned=partitioned)
    for path in paths:
        folder = staging / path
        folder.mkdir(parents=True)
        (folder / "data.parquet").write_text(text)
        (folder / marker_name(run_id, attempt)).touch()
    return staging, [{"path": path} for path in paths]


def content(root: Path) -> dict[str, str]:
    files = sorted(root.rglob("data.parquet"))
    return {path.parent.relative_to(root).as_posix(): path.read_text() for path in files}


def test_partitions_replace_exactly_those_of_the_same_key(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    staging, partitions = stage(root, ["day=1", "day=2"], text="old")
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    staging, partitions = stage(root, ["day=2", "day=3"], run_id=2, text="new")
    publish(str(root), str(staging), partitions, run_id=2, attempt=ATTEMPT, fence=1)
    assert content(root) == {"day=1": "old", "day=2": "new", "day=3": "new"}
    assert sorted(entry.name for entry in root.iterdir()) == ["day=1", "day=2", "day=3"]


def test_an_asset_without_partitions_is_swapped_as_a_whole(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    for run_id, text in ((1, "old"), (2, "new")):
        staging, partitions = stage(root, ["."], run_id=run_id, text=text)
        publish(str(root), str(staging), partitions, run_id=run_id, attempt=ATTEMPT, fence=1)
    assert content(root) == {".": "new"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["asset"]


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    staging, partitions = stage(root, ["day=1"], text="old")
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    staging, partitions = stage(root, ["day=1"], run_id=2, text="new")
    for fence in (1, 1, 2, 3):
        publish(str(root), str(staging), partitions, run_id=2, attempt=ATTEMPT, fence=fence)
    assert content(root) == {"day=1": "new"}


def test_an_attempt_of_another_database_with_the_same_numbers_is_another_attempt(
    tmp_path: Path,
) -> None:
    root = tmp_path / "asset"
    names: dict[str, Any] = {"run_id": 1, "attempt": "1-aaaaaaaaaaaa"}
    staging, partitions = stage(root, ["day=1"], text="old", **names)
    publish(str(root), str(staging), partitions, fence=1, **names)
    # As after a restore, and as from a second installation: the ids begin at 1 again.
    names["attempt"] = "1-bbbbbbbbbbbb"
    assert published(str(root), ["day=1"], **names) == []
    staging, partitions = stage(root, ["day=1"], text="new", **names)
    discard(str(root), run_id=1, attempt="1-aaaaaaaaaaaa")
    publish(str(root), str(staging), partitions, fence=1, **names)
    assert content(root) == {"day=1": "new"}
    assert published(str(root), ["day=1"], **names) == ["day=1"]


def test_another_finishes_what_was_begun_under_a_lower_number(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    staging, partitions = stage(root, ["day=1", "day=2"], text="new")
    stage(root, ["day=1"], run_id=9, text="old")[0].joinpath("day=1").rename(root / "day=1")
    # As a crash between two exchanges leaves it: one is done, and the staging bears a number.
    publish(str(root), str(staging), partitions[:1], run_id=1, attempt=ATTEMPT, fence=2)
    staging, _ = stage(root, ["day=2"], text="new", fence=2)
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=3)
    assert content(root)["day=1"] == content(root)["day=2"] == "new"


def test_a_worker_that_wakes_up_late_publishes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    staging, partitions = stage(root, ["day=1"], text="late")
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=2)
    newer, _ = stage(root, ["day=1"], run_id=2, text="newer")
    publish(str(root), str(newer), partitions, run_id=2, attempt=ATTEMPT, fence=1)
    with pytest.raises(StagingLostError, match="was not published"):
        publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    assert content(root) == {"day=1": "newer"}


@pytest.mark.parametrize("kills", range(6))
def test_a_publication_killed_anywhere_is_finished_by_the_next(tmp_path: Path, kills: int) -> None:
    root = tmp_path / "asset"
    paths = [f"day={day}" for day in range(40)]
    old, partitions = stage(root, paths, text="old")
    publish(str(root), str(old), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    staging, _ = stage(root, paths, run_id=2, text="new")
    script = (
        "import os, sys, slicewise.storage.publishing as p\n"
        "steps = int(sys.argv[3])\n"
        "real = p.put_in_place\n"
        "def put(source, target):\n"
        "    global steps\n"
        "    steps -= 1\n"
        "    if steps == 0: os.kill(os.getpid(), 9)\n"
        "    real(source, target)\n"
        "    if steps == 1 and int(sys.argv[3]) % 2: os.kill(os.getpid(), 9)\n"
        "p.put_in_place = put\n"
        "parts = [{'path': f'day={n}'} for n in range(40)]\n"
        "p.publish(sys.argv[1], sys.argv[2], parts, run_id=2, attempt=sys.argv[4], fence=2)\n"
    )
    step = str(1 + 7 * kills)
    dead = subprocess.run([sys.executable, "-c", script, str(root), str(staging), step, ATTEMPT])
    assert dead.returncode == -9
    publish(str(root), str(staging), partitions, run_id=2, attempt=ATTEMPT, fence=3)
    assert set(content(root).values()) == {"new"}
    assert len(content(root)) == 40


def test_a_reader_sees_the_old_or_the_new_and_never_neither(tmp_path: Path) -> None:
    root, observed, stop = tmp_path / "asset", set(), threading.Event()
    staging, partitions = stage(root, ["day=1"], run_id=1, text="0")
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)

    def read() -> None:
        while not stop.is_set():
            observed.add((root / "day=1").exists())

    reader = threading.Thread(target=read)
    reader.start()
    for run_id in range(2, 60):
        staging, _ = stage(root, ["day=1"], run_id=run_id, text=str(run_id))
        publish(str(root), str(staging), partitions, run_id=run_id, attempt=ATTEMPT, fence=1)
    stop.set()
    reader.join()
    assert observed == {True}
    assert content(root) == {"day=1": "59"}


def test_a_folder_that_is_no_part_of_the_partition_is_never_swapped_away(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    (root / "other_asset").mkdir(parents=True)
    staging, partitions = stage(root, ["."], text="new")
    with pytest.raises(StorageError, match="other_asset"):
        publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    assert (root / "other_asset").is_dir()


@pytest.mark.parametrize("path", ["../other", "/etc", "day=1/../../x", ""])
def test_a_path_that_leads_out_of_the_asset_is_refused(tmp_path: Path, path: str) -> None:
    staging, _ = stage(tmp_path / "asset", ["day=1"], text="x")
    with pytest.raises(StorageError):
        publish(
            str(tmp_path / "asset"),
            str(staging),
            [{"path": path}],
            run_id=1,
            attempt=ATTEMPT,
            fence=1,
        )


def test_discarding_removes_what_was_staged_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "asset"
    staging, partitions = stage(root, ["day=1"], text="kept")
    publish(str(root), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    stage(root, ["day=1"], run_id=2, fence=2, text="unwanted")
    stage(root, ["."], run_id=2, fence=1, text="unwanted")
    stage(root, ["day=2"], run_id=22, text="another run's")
    discard(str(root), run_id=2, attempt=ATTEMPT)
    discard(str(root), run_id=2, attempt=ATTEMPT)
    assert sorted(entry.name for entry in root.iterdir()) == [
        "_slicewise-staging-22-1-0123456789ab-1",
        "day=1",
    ]
    assert [entry.name for entry in tmp_path.iterdir()] == ["asset"]


def test_a_lock_that_is_never_given_back_delays_but_does_not_prevent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("slicewise.storage.publishing.LOCK_PATIENCE_SECONDS", 0.1)
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    staging, partitions = stage(tmp_path / "asset", ["day=1"], text="new")
    publish(str(tmp_path / "asset"), str(staging), partitions, run_id=1, attempt=ATTEMPT, fence=1)
    os.close(holder)
    assert content(tmp_path / "asset") == {"day=1": "new"}


def test_names_of_folders_are_escaped_as_spark_does() -> None:
    values = [("hour", "2013-01-01T05:00Z"), ("dwh", "a/b=c%?"), ("none", "")]
    assert partition_folder(values) == (
        "hour=2013-01-01T05%3A00Z/dwh=a%2Fb%3Dc%25%3F/none=__HIVE_DEFAULT_PARTITION__"
    )
    assert partition_folder([]) == "."
    assert unescape(escape("a/b=c%? ü\t")) == "a/b=c%? ü\t"
