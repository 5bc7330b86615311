"""Remains of failed attempts are cleared away, after any kill or absence."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.attempts import begin
from assets_app.execution.attempt.engines import WorkMayContinueError
from assets_app.execution.gateway import clearing, publishing, recovery
from assets_app.execution.queue import messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import AssetPartition, Gateway, ProducerVersion, Run, RunAttempt, RunState
from slicewise.io import find_storage
from slicewise.plugins import PluginError
from slicewise.process.removal import remove_folder
from slicewise.storage import fencing
from tests.attempts import begun
from tests.execution.conftest import lose_the_worker
from tests.execution.staged_attempts import Ready, ready
from tests.factories import DAILY_2013, asset
from tests.partition_records import counts_agree_with_partitions

__all__ = ["ready"]

Sent = list[tuple[str, tuple[Any, ...], str]]


class Spark:
    """An engine that stops sessions, unless the engine is silent."""

    def __init__(self) -> None:
        self.is_silent = False
        self.stopped: list[int] = []

    def stop(self, parent: Any, attempt: RunAttempt) -> None:
        if self.is_silent:
            raise WorkMayContinueError("silent")
        self.stopped.append(attempt.number)


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    played = Spark()
    monkeypatch.setattr(clearing, "engine_of", lambda attempt: played)
    monkeypatch.setattr(recovery, "current", lambda: SimpleNamespace(parent=None))
    return played


def tick(sent: Sent) -> int:
    """Run a tick and let workers obey its messages; return the number of messages."""
    sent.clear()
    clearing.ask_to_clear()
    attempt_ids = [
        arguments[0] for task, arguments, _ in sent if task == messages.CLEAR_LOST_ATTEMPT
    ]
    for attempt_id in attempt_ids:
        recovery.clear_lost_attempt(int(attempt_id))
    return len(attempt_ids)


def let_time_pass() -> None:
    RunAttempt.objects.filter(clear_at__isnull=False).update(
        clear_at=timezone.now() - timedelta(seconds=1)
    )


@pytest.fixture
def lost(alice: User, gateway: Gateway) -> Run:
    """Return a run whose worker was lost, in the queue again."""
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    lose_the_worker()
    recovery.recover()
    return attempt.run


def test_a_queued_run_is_not_canceled_before_the_work_of_its_lost_attempt_is_stopped(
    lost: Run, alice: User, spark: Spark, sent: Sent
) -> None:
    spark.is_silent = True
    assert cancel_run(lost, user=alice).state == RunState.CANCELING
    assert AssetPartition.objects.get().held_by_id == lost.pk
    assert tick(sent) == 1
    assert Run.objects.get().state == RunState.CANCELING
    assert tick(sent) == 0, "it is asked for again at once"
    spark.is_silent = False
    let_time_pass()
    assert tick(sent) == 1
    assert Run.objects.get().state == RunState.CANCELED
    assert spark.stopped == [1]
    assert AssetPartition.objects.get().held_by_id is None
    assert counts_agree_with_partitions()


def test_so_is_one_that_was_dispatched_again(lost: Run, alice: User, sent: Sent) -> None:
    dispatch()
    assert cancel_run(lost, user=alice).state == RunState.CANCELING
    assert tick(sent) == 1
    assert Run.objects.get().state == RunState.CANCELED


def test_a_message_that_is_lost_is_sent_again(lost: Run, alice: User, sent: Sent) -> None:
    cancel_run(lost, user=alice)
    clearing.ask_to_clear()
    let_time_pass()
    assert tick(sent) == 1
    assert Run.objects.get().state == RunState.CANCELED


def test_a_worker_that_is_killed_before_it_says_so_is_followed_by_another(
    lost: Run, alice: User, sent: Sent
) -> None:
    cancel_run(lost, user=alice)
    with (
        patch.object(ending, "cancel_cleared", side_effect=SystemExit),
        pytest.raises(SystemExit),
    ):
        tick(sent)
    assert Run.objects.get().state == RunState.CANCELING
    let_time_pass()
    tick(sent)
    assert Run.objects.get().state == RunState.CANCELED


def test_a_run_whose_work_was_stopped_is_canceled_at_once(
    lost: Run, alice: User, sent: Sent
) -> None:
    let_time_pass()
    tick(sent)
    assert cancel_run(Run.objects.get(), user=alice).state == RunState.CANCELED


def test_clearing_waits_for_a_live_gateway(
    lost: Run, alice: User, gateway: Gateway, sent: Sent
) -> None:
    cancel_run(lost, user=alice)
    Gateway.objects.update(draining=True)
    assert tick(sent) == 0
    Gateway.objects.update(draining=False)
    assert tick(sent) == 1


def test_only_so_many_are_asked_for_at_once_and_each_in_its_turn(
    lost: Run, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = RunAttempt.objects.get()
    RunAttempt.objects.bulk_create(
        RunAttempt(
            run=lost, number=number, token=f"{number:032x}", started_at=old.started_at,
            ended_at=old.ended_at, outcome="failed",
            clear_at=timezone.now() - timedelta(seconds=number),
        )
        for number in range(2, 6)
    )  # fmt: skip
    monkeypatch.setattr(clearing, "_SENT_AT_ONCE", 2)
    with patch.object(recovery, "clear_lost_attempt"):
        assert [tick(sent) for _ in range(3)] == [2, 2, 0]


def test_an_attempt_that_goes_on_is_never_cleared_away(
    lost: Run, gateway: Gateway, spark: Spark, sent: Sent
) -> None:
    dispatch()
    again = begin(lost.pk, gateway)
    assert again is not None
    let_time_pass()
    tick(sent)
    recovery.clear_lost_attempt(again.row.pk)
    assert spark.stopped == [1], "only what was lost is stopped"
    with pytest.raises(IntegrityError), transaction.atomic():
        RunAttempt.objects.filter(pk=again.row.pk).update(clear_at=timezone.now())


def keep_outlet_at(root: Path) -> None:
    version = ProducerVersion.objects.get()
    version.definition["outlets"] = [{"name": "raw_flights", "uri": f"file:{root}"}]
    version.save()


@pytest.fixture
def failed(ready: Ready) -> Ready:
    """Return a failed publication whose worker was killed before clearing away."""
    keep_outlet_at(ready.root)
    (ready.root / "partition=2013-01-02").write_text("a file, not a folder")
    with patch.object(publishing, "_discard"):
        ready.publish()
    assert Run.objects.get().state == RunState.FAILED
    assert list(ready.root.glob("_slicewise-staging*"))
    return ready


def left(folder: Path) -> list[str]:
    return [entry.name for entry in folder.glob("_slicewise*")]


def test_remains_of_a_failed_publication_are_removed(failed: Ready, sent: Sent) -> None:
    let_time_pass()
    assert tick(sent) == 1
    assert left(failed.root) == []
    let_time_pass()
    assert tick(sent) == 0


class Stubborn:
    """A file system that removes no folder while the file system is busy."""

    def __init__(self) -> None:
        self.is_busy = True

    def remove_folder(self, folder: Path) -> None:
        if not self.is_busy:
            remove_folder(folder)


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Stubborn:
    file_system = Stubborn()
    monkeypatch.setattr(fencing, "remove_folder", file_system.remove_folder)
    return file_system


def test_remains_that_a_publication_could_not_remove_are_removed_later(
    ready: Ready, sent: Sent, stubborn: Stubborn
) -> None:
    keep_outlet_at(ready.root)
    for path in ("partition=2013-01-02", "partition=2013-01-03"):
        (ready.root / path).mkdir()
        (ready.root / path / "part-0.parquet").write_text("old rows")
    ready.publish()
    assert Run.objects.get().state == RunState.SUCCEEDED
    assert len(left(ready.root)) == 1
    let_time_pass()
    assert tick(sent) == 1
    assert len(left(ready.root)) == 1, "and it is told"
    stubborn.is_busy = False
    let_time_pass()
    assert tick(sent) == 1
    assert left(ready.root) == []
    let_time_pass()
    assert tick(sent) == 0
    published = {path.parent.name for path in ready.root.glob("partition=*/_slicewise-*")}
    assert len(published) == 3


def test_a_publication_that_has_left_nothing_is_not_looked_at_again(
    ready: Ready, sent: Sent
) -> None:
    ready.publish()
    let_time_pass()
    assert tick(sent) == 0


def test_staged_data_of_a_publishing_run_is_kept(ready: Ready, sent: Sent) -> None:
    let_time_pass()
    assert tick(sent) == 0
    recovery.clear_lost_attempt(ready.attempt.pk)
    assert ready.staging.exists()


def test_a_broken_package_keeps_nothing_but_its_own_data_from_being_removed(
    failed: Ready, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = ProducerVersion.objects.get()
    version.definition["outlets"].insert(0, {"name": "till", "uri": "pos://mitte/till"})
    version.save()
    attempt = RunAttempt.objects.get()
    real = find_storage

    def find(uri: str | None) -> Any:
        if uri and uri.startswith("pos:"):
            raise PluginError("pos cannot be loaded")
        return real(uri)

    monkeypatch.setattr(publishing, "find_storage", find)
    names = {"raw_flights": failed.outlet.name_on_disk, "till": "other"}
    monkeypatch.setattr(RunAttempt, "disk_names", lambda self, version: names)
    let_time_pass()
    assert tick(sent) == 1
    assert left(failed.root) == []
    attempt.refresh_from_db()
    assert attempt.clear_at is not None, "the other outlet's data is looked for again"


@pytest.mark.parametrize(("days", "asked_again"), [(29, 1), (31, 0)])
def test_a_storage_that_was_retired_is_not_asked_for_ever(
    failed: Ready, sent: Sent, monkeypatch: pytest.MonkeyPatch, days: int, asked_again: int
) -> None:
    monkeypatch.setattr(publishing, "find_storage", Mock(side_effect=OSError("no such host")))
    RunAttempt.objects.update(ended_at=timezone.now() - timedelta(days=days))
    let_time_pass()
    assert tick(sent) == 1
    let_time_pass()
    assert tick(sent) == asked_again
