"""A runner that names foreign locations: nothing of the run is published, and the run fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assets_app.models import ProducerVersion, Run, RunAttempt, RunPartition, RunState
from slicewise import storage
from tests.execution.conftest import alice, gateway
from tests.supervised_runs import BY_CODE, ENDED, Message, Worker, execute, root, run, spark, worker

__all__ = ["alice", "gateway", "root", "run", "spark", "worker"]

DAY, FOLDER = "2013-01-01", "partition=2013-01-01"
RIGHT = {"key": DAY, "path": FOLDER, "rows": 1, "bytes": 4}
Forge = Callable[[Message, Path], None]


class Forger:
    """A runner that writes the data of its code, and sends forged messages."""

    def __init__(self, worker: Worker, root: Path) -> None:
        self.worker, self.root, self.kills = worker, root, 0
        self.forge: Forge = lambda message, staging: None
        self.after: list[Message] = [{"type": "finished"}, ENDED]
        self.before: list[Message] = []
        worker.launch = self.launch  # type: ignore[method-assign]

    def launch(self, request: Message) -> Any:
        names = (request["run_id"], request["attempt_name"])
        staging = storage.staging_path(self.root, *names, request["fence"], partitioned=True)
        folder = staging / FOLDER
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_text("rows")
        (folder / storage.marker_name(*names)).touch()
        message: Message = {"type": "staged", "asset": "raw_flights", "root": str(self.root)}
        message |= {"staging": str(staging), "partitions": [dict(RIGHT)]}
        self.forge(message, staging)
        self.worker.said = [*self.before, message, *self.after]
        runner = Worker.launch(self.worker, request)
        runner.kill = self._count  # type: ignore[method-assign]
        return runner

    def _count(self) -> None:
        self.kills += 1


@pytest.fixture
def forger(worker: Worker, root: Path) -> Forger:
    return Forger(worker, root)


def test_data_with_true_locations_is_published(forger: Forger, run: Run, root: Path) -> None:
    assert execute(run).state == RunState.SUCCEEDED, run.error
    assert (root / FOLDER / "part.parquet").read_text() == "rows"
    assert forger.kills == 1, "it is seen to have ended"


def another_staging(message: Message, staging: Path) -> None:
    """Name the staging of another attempt at another run, in the same lake."""
    moved_staging = staging.with_name(staging.name.replace("staging-", "staging-9"))
    staging.rename(moved_staging)
    message["staging"] = str(moved_staging)


def staging_of_another_asset(message: Message, staging: Path) -> None:
    message["staging"] = str(staging.parent.parent / "another" / staging.name)


def another_number(message: Message, staging: Path) -> None:
    message["staging"] = message["staging"].removesuffix("1") + "7"


def path_of(path: str) -> Forge:
    def forge(message: Message, staging: Path) -> None:
        message["partitions"][0]["path"] = path

    return forge


def key_of(key: str, path: str) -> Forge:
    def forge(message: Message, staging: Path) -> None:
        message["partitions"].append({"key": key, "path": path, "rows": 1, "bytes": 4})

    return forge


FORGED: dict[str, tuple[Forge, str]] = {
    "staging of another attempt": (another_staging, "not the staging of the attempt"),
    "staging of another asset": (staging_of_another_asset, "not the staging of the attempt"),
    "another fencing number": (another_number, "not the staging of the attempt"),
    "a folder of its own choice": (path_of("secretdir"), "which is not the folder"),
    "a folder above": (path_of("../another"), "which is not the folder"),
    "an absolute folder": (path_of("/etc/cron.d"), "which is not the folder"),
    "a spelling of its folder": (path_of(f"./{FOLDER}"), "which is not the folder"),
    "the asset itself": (path_of("."), "which is not the folder"),
    "a day of another run": (
        key_of("2013-01-02", "partition=2013-01-02"), "which the run does not cover",
    ),
    "no day at all": (key_of("../..", "x"), "which the run does not cover"),
    "a day that comes twice": (key_of(DAY, FOLDER), "twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_place_of_its_own_choice_ends_the_run(
    forger: Forger, run: Run, root: Path, name: str
) -> None:
    forger.forge, sentence = FORGED[name]
    ended = execute(run)
    assert (ended.state, ended.error_kind) == (RunState.FAILED, "code")
    assert sentence in ended.error
    assert forger.kills == 2, "it is not listened to for longer than it takes to end it"
    assert not (root / FOLDER).exists()
    assert not list(root.glob("*/part.parquet"))
    assert list(RunPartition.objects.values_list("path", flat=True)) == [""]
    assert RunAttempt.objects.get().outcome == "failed"


def test_a_run_that_lies_keeps_no_part_of_its_data(forger: Forger, run: Run, root: Path) -> None:
    version = ProducerVersion.objects.get()
    version.definition["on_partial"] = "publish"
    version.save()
    forger.before = [{"type": "unmade", "partitions": [{"key": "2013-01-02", "error": "no"}]}]
    forger.after = [BY_CODE, ENDED]
    ended = execute(run)
    assert (ended.state, ended.error_kind) == (RunState.FAILED, "code")
    assert "'2013-01-02', which the run does not cover" in ended.error
    assert not (root / FOLDER).exists()


def test_data_of_what_nothing_here_keeps_is_refused(forger: Forger, run: Run, root: Path) -> None:
    version = ProducerVersion.objects.get()
    version.definition["outlets"] = [{"name": "raw_flights", "uri": None}]
    version.save()
    ended = execute(run)
    assert (ended.state, ended.error_kind) == (RunState.FAILED, "code")
    assert "no storage here serves the URI" in ended.error
