"""Workers that publish one partition of a bucket at once, each stopped before each of its requests.

A reader checks the result: the reader takes the files to which `read` sends Spark.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import obstore
import pytest

from slicewise import PartitionBySequence
from slicewise.io import Storage, StorageLocation, Writer, storage_at
from slicewise.io.files import Files
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage import StagingLostError
from tests.runtime.stepped_worker import SteppedWorker, asking_first

DEFINITION = PartitionBySequence(["mon", "tue"], name="day")
MODES = pytest.mark.parametrize("mode", ["replace", "append", "version"])
REQUESTS = {
    Files: ("put", "names", "delete", "remove", "data"),
    obstore: ("put", "get", "list_with_delimiter", "delete"),
}


class Rows(list[int]):
    """A frame of the runs that wrote its rows."""

    def drop(self, *columns: str) -> "Rows":
        return self

    def unionByName(self, other: "Rows", **options: bool) -> "Rows":
        return Rows([*self, *other])


class Lake:
    """An asset of two days in a bucket."""

    def __init__(self, folder: Path, mode: Any) -> None:
        self.folder, self.mode = folder, mode
        folder.mkdir()

    def storage(self) -> Storage:
        connection = {"arrow": f"file://{self.folder}"}
        location = StorageLocation(
            uri="s3://lake/sales", write_mode=self.mode, format="json", connection=connection
        )
        return storage_at(location)

    def stage(self, run_id: int, days: Iterable[str] = ("mon",)) -> Writer:
        writer = Writer(run_id=run_id, attempt="1-a")
        home = self.folder / "sales" / self.storage().staging(writer, partitioned=True)
        for day in days:
            (home / path(day)).mkdir(parents=True)
            (home / path(day) / "part-0.json").write_text(json.dumps({"run": run_id}))
        return writer

    def publish(self, writer: Writer, *days: str) -> Any:
        return self.storage().publish("", pieces(days or ("mon",)), writer)

    def give_up(self, writer: Writer, *days: str) -> list[str]:
        """Give up as a worker that cannot publish; return the paths that the worker records as
        published.
        """
        days = days or ("mon",)
        with suppress(StagingLostError):
            self.storage().check("", pieces(days), writer)
        return self.storage().published([path(day) for day in days], writer)

    def write(self, run_id: int) -> Any:
        return self.publish(self.stage(run_id))

    def rows(self, day: str = "mon", version: int | None = None) -> list[int]:
        """Return the runs whose rows a reader sees."""
        key = PartitionKey.of(day)
        return sorted(self.storage().read(None, DEFINITION, [key], version=version))


def path(day: str) -> str:
    return key_folder(DEFINITION, PartitionKey.of(day))


def pieces(days: Iterable[str]) -> list[dict[str, str]]:
    return [{"key": day, "path": path(day)} for day in days]


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask workers before each request to the store; no Spark is started for reads."""

    for home, names in REQUESTS.items():
        for name in names:
            monkeypatch.setattr(home, name, asking_first(getattr(home, name)))

    def read(_: Any, files: Files, folders: Sequence[str], __: Any) -> Rows:
        rows = Rows()
        for folder in map(files.below, folders):
            infos = folder.data()
            assert infos, f"a reader is sent to {folder.path}, where nothing is"
            for info in infos:
                rows.append(json.loads(folder.get(info.base_name) or b"")["run"])
        return rows

    monkeypatch.setattr("slicewise.io.objects.read", read)


def expected(mode: str, *runs: int) -> list[int]:
    return sorted(runs) if mode == "append" else [runs[-1]]


@MODES
def test_a_late_worker_beside_its_successor_neither_stops_it_nor_changes_its_data(
    tmp_path: Path, mode: str
) -> None:
    number = count()
    for late_step in count(1):
        for step in count(1):
            lake = Lake(tmp_path / str(next(number)), mode)
            lake.write(1)
            writer = lake.stage(2)
            late = SteppedWorker(partial(lake.publish, writer), late_step)
            is_late = late.reach()
            successor = SteppedWorker(partial(lake.publish, replace(writer, fence=2)), step)
            is_paused = successor.reach()
            late.end()
            successor.end()
            case = (late_step, step, late.error)
            assert successor.error is None, case
            assert late.error is None or isinstance(late.error, StagingLostError), case
            assert lake.rows() == expected(mode, 1, 2), case
            if not is_paused:
                break
        if not is_late:
            break
    assert late_step > 4


@pytest.mark.parametrize("follows", [True, False], ids=["another run follows", "nothing follows"])
@MODES
def test_a_worker_that_wakes_up_after_its_successor_gave_up_changes_nothing(
    tmp_path: Path, mode: str, follows: bool
) -> None:
    for step in count(1):
        lake = Lake(tmp_path / str(step), mode)
        lake.write(1)
        writer = lake.stage(2)
        late = SteppedWorker(partial(lake.publish, writer), step)
        is_late = late.reach()
        recorded = lake.give_up(replace(writer, fence=2))
        assert recorded in ([], [path("mon")])
        runs = [1, *([2] if recorded else [])]
        if follows:
            runs.append(3)
            lake.write(3)
        assert lake.rows() == expected(mode, *runs), step
        late.end()
        assert lake.rows() == expected(mode, *runs), (step, late.error)
        assert isinstance(late.error, StagingLostError) or recorded, step
        if not is_late:
            break
    assert step > 4


@MODES
def test_of_two_runs_that_write_one_partition_each_is_in_once(tmp_path: Path, mode: str) -> None:
    """Two assets with one URI may publish so."""
    number = count()
    for first_step in count(1):
        for step in count(1):
            lake = Lake(tmp_path / str(next(number)), mode)
            lake.write(1)
            numbers: dict[int, Any] = {}

            def publish(
                run: int, writer: Writer, lake: Lake = lake, numbers_by_run: Any = numbers
            ) -> None:
                numbers_by_run[run] = lake.publish(writer)[path("mon")].get("version")

            first, second = (
                SteppedWorker(partial(publish, run, lake.stage(run)), stop)
                for run, stop in ((2, first_step), (3, step))
            )
            is_first_paused, is_second_paused = first.reach(), second.reach()
            first.end()
            second.end()
            case = (first_step, step, first.error, second.error)
            assert (first.error, second.error) == (None, None), case
            if mode == "append":
                assert lake.rows() == [1, 2, 3], case
            else:
                assert lake.rows() in ([2], [3]), case
            if mode == "version":
                assert [lake.rows(version=numbers[run]) for run in (2, 3)] == [[2], [3]], case
            if not is_second_paused:
                break
        if not is_first_paused:
            break
    assert first_step > 4


def test_a_worker_that_gives_up_takes_every_partition_first(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", "replace")
    writer = lake.stage(1, ["tue"])  # what was staged for monday is gone
    assert lake.give_up(replace(writer, fence=2), "mon", "tue") == []
    with pytest.raises(StagingLostError, match="another worker"):
        lake.publish(writer, "tue")


def test_a_publication_that_fails_takes_every_partition_first(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", "replace")
    writer = lake.stage(1, ["tue"])
    with pytest.raises(StagingLostError, match="the staged data is missing"):
        lake.publish(replace(writer, fence=2), "mon", "tue")
    recorded = lake.storage().published([path("tue")], writer)
    with suppress(StagingLostError):
        lake.publish(writer, "tue")
    assert lake.storage().published([path("tue")], writer) == recorded


@MODES
def test_a_fence_outlasts_whatever_is_published_after_it(tmp_path: Path, mode: str) -> None:
    lake = Lake(tmp_path / "lake", mode)
    writer = lake.stage(1)
    lake.give_up(replace(writer, fence=2))
    for run in range(2, 5):
        lake.write(run)
    with pytest.raises(StagingLostError, match="another worker"):
        lake.publish(writer)
    assert lake.rows() == expected(mode, 2, 3, 4)
