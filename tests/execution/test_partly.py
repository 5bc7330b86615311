"""A run that fails in part publishes the complete partitions, where its asset asks for that."""

from pathlib import Path
from typing import Any

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.outputs import Output, stored_outlets
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.retrying import rerun, retry_run
from assets_app.management.request_progress import request_progress
from assets_app.models import (
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    Run,
    RunPartition,
    RunState,
)
from slicewise import storage
from slicewise_server.alerts.messages import message
from slicewise_server.events.models import Event, EventKind
from tests.attempts import begun
from tests.execution.staged_attempts import Ready
from tests.factories import DAILY_2013, asset
from tests.partition_records import counts_agree_with_partitions
from tests.supervised_runs import (
    BY_CODE,
    BY_PLATFORM,
    ENDED,
    Worker,
    change_options,
    execute,
    root,
    run,
    spark,
    worker,
)

__all__ = ["root", "run", "spark", "worker"]
WHY = "It does not pass row_count: The data has 0 rows."


@pytest.fixture
def three(run: Run, alice: User) -> Run:
    """Create a run of three days, whose asset publishes complete partitions."""
    change_options(on_partial="publish")
    from assets_app.execution.queue.control import cancel_run
    from assets_app.execution.request.requests import MaterializeRequest, materialize

    cancel_run(run, user=alice)
    request = MaterializeRequest(
        asset=run.asset, selection="2013-01-01..2013-01-03", strategy="range"
    )
    return materialize(request, user=alice).runs.get()


def says(worker: Worker, root: Path, made_keys: list[str], left_out: list[str], end: Any) -> None:
    """Let the runner stage some days, leave other days out, and end."""

    def stage(request: Any) -> None:
        run_id, name = request["run_id"], request["attempt_name"]
        staging = storage.staging_path(root, run_id, name, request["fence"], partitioned=True)
        pieces = []
        for key in made_keys:
            folder = staging / f"partition={key}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / storage.marker_name(run_id, name)).touch()
            pieces.append({"key": key, "path": f"partition={key}", "rows": 5, "bytes": 50})
        unmade = [{"key": key, "error": WHY} for key in left_out]
        worker.said[:] = [
            {"type": "unmade", "partitions": unmade},
            {"type": "staged", "root": str(root), "staging": str(staging), "partitions": pieces},
            *end,
        ]

    def launch(request: Any) -> Any:
        stage(request)
        return Worker.launch(worker, request)

    worker.launch = launch  # type: ignore[method-assign]


def states(run: Run) -> dict[str, str]:
    return dict(run.partitions.order_by("position").values_list("partition__key", "state"))


def test_complete_partitions_of_a_failed_run_are_published_and_recorded(
    three: Run, worker: Worker, root: Path
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    ended = execute(three)
    assert (ended.state, ended.error, ended.error_kind) == (RunState.FAILED, "no", "code")
    assert states(three) == {
        "2013-01-01": "succeeded", "2013-01-02": "failed", "2013-01-03": "succeeded",
    }  # fmt: skip
    assert RunPartition.objects.get(run=three, partition__key="2013-01-02").error == WHY
    partitions = dict(AssetPartition.objects.values_list("key", "state"))
    assert partitions == {
        "2013-01-01": "materialized", "2013-01-02": "failed", "2013-01-03": "materialized",
    }  # fmt: skip
    assert Materialization.objects.count() == 2
    assert Outbox.objects.filter(run=three).exists()
    assert sorted(path.name for path in root.glob("partition=*")) == [
        "partition=2013-01-01", "partition=2013-01-03",
    ]  # fmt: skip
    assert not list(root.glob("_slicewise*"))
    assert counts_agree_with_partitions()
    assert three.group is not None
    progress = request_progress(three.group)
    assert (progress.done, progress.failed, progress.total) == (3, 1, 3)


def test_the_event_and_its_alert_name_the_partitions_that_failed(
    three: Run, worker: Worker, root: Path, alice: User
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    execute(three)
    event = Event.objects.get()
    assert event.detail["partitions"] == 3
    assert event.detail["failed"] == 1
    assert event.detail["failed_partitions"] == ["2013-01-02"]
    assert "  1 of 3 partitions failed: 2013-01-02" in message([event])["text"].splitlines()
    retry_run(three, user=alice)
    says(worker, root, ["2013-01-02"], [], [{"type": "finished"}, ENDED])
    execute(three)
    recovered = Event.objects.latest("id")
    assert recovered.kind == EventKind.RUN_RECOVERED
    assert "failed" not in recovered.detail


def test_the_event_of_a_run_that_published_nothing_names_its_selection(
    three: Run, worker: Worker, root: Path
) -> None:
    change_options(on_partial="discard")
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    execute(three)
    event = Event.objects.get()
    assert "failed_partitions" not in event.detail
    assert "  partitions 2013-01-01..2013-01-03" in message([event])["text"].splitlines()


def test_a_command_that_waits_counts_a_partition_of_several_assets_once(
    three: Run, worker: Worker, root: Path
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    other = asset("airlines", DAILY_2013)
    for position, key in enumerate(("2013-01-01", "2013-01-02", "2013-01-03"), start=3):
        row = AssetPartition.objects.create(asset=other, identity=other.identity, key=key)
        RunPartition.objects.create(run=three, partition=row, position=position, state="succeeded")
    execute(three)
    assert three.group is not None
    progress = request_progress(three.group)
    assert (progress.done, progress.failed, progress.total) == (3, 1, 3)


def test_a_retry_makes_the_rest_only(
    three: Run, worker: Worker, root: Path, alice: User, gateway: Gateway
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    execute(three)
    retry_run(three, user=alice)
    assert AssetPartition.objects.filter(held_by=three).count() == 1
    dispatch()
    attempt = attempts.begin(three.pk, gateway)
    assert attempt is not None
    assert list(attempt.keys) == ["2013-01-02"]
    assert RunPartition.objects.get(run=three, state="pending").error == ""
    ending.fail(attempt.row, ending.Failure(error="again"))
    assert list(states(three).values()) == ["succeeded", "failed", "succeeded"]
    assert Materialization.objects.count() == 2
    assert counts_agree_with_partitions()


def test_a_retried_rest_that_succeeds_makes_the_run_a_success(
    three: Run, worker: Worker, root: Path, alice: User
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    execute(three)
    retry_run(three, user=alice)
    says(worker, root, ["2013-01-02"], [], [{"type": "finished"}, ENDED])
    assert execute(three).state == RunState.SUCCEEDED
    assert set(states(three).values()) == {"succeeded"}
    versions = AssetPartition.objects.order_by("key").values_list("version", flat=True)
    assert list(versions) == [1, 1, 1]
    assert counts_agree_with_partitions()


def test_run_again_it_makes_all_of_them(
    three: Run, worker: Worker, root: Path, alice: User
) -> None:
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    again = rerun(execute(three), user=alice).runs.get()
    assert again.partition_count == 3


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"retries": 1}, BY_CODE),
        ({"on_partial": "discard"}, BY_CODE),
        ({}, BY_PLATFORM),
    ],
)
def test_nothing_is_published_before_the_last_try_nor_without_being_asked(
    three: Run, worker: Worker, root: Path, options: dict[str, Any], end: Any
) -> None:
    change_options(**options)
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [end, ENDED])
    execute(three)
    assert not Materialization.objects.exists()
    assert not list(root.glob("partition=*"))
    assert not list(root.glob("_slicewise*"))


def test_nothing_is_published_with_partitions_that_are_not_the_run_s(
    three: Run, worker: Worker, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that discovers partitions, and writes a partition without adding it, is such a run."""

    def refuse(output: Output) -> None:
        raise ValueError("The run wrote the partition 'x', which the run did not add.")

    monkeypatch.setattr(Output, "refuse_incomplete", refuse)
    says(worker, root, ["2013-01-01", "2013-01-03"], ["2013-01-02"], [BY_CODE, ENDED])
    assert execute(three).state == RunState.FAILED
    assert not Materialization.objects.exists()
    assert not list(root.glob("partition=*"))


def test_connections_that_cannot_be_read_when_data_is_staged_fail_no_run(
    run: Run, worker: Worker, root: Path, settings: Any, tmp_path: Path
) -> None:
    settings.SLICEWISE_CONNECTIONS = connections_file = tmp_path / "connections.json"
    connections_file.write_text("{}")
    says(worker, root, ["2013-01-01"], [], [{"type": "finished"}, ENDED])
    staging = worker.launch

    def launch(request: Any) -> Any:
        connections_file.write_text("{")  # somebody is writing it
        return staging(request)

    worker.launch = launch  # type: ignore[method-assign]

    def mend() -> None:
        connections_file.write_text("{}")

    worker.meanwhile = mend
    ended = execute(run)
    assert ended.state == RunState.SUCCEEDED, ended.error


def test_whoever_takes_over_publishes_the_part_and_fails_the_run(
    alice: User, gateway: Gateway, tmp_path: Path
) -> None:
    from assets_app.execution.attempt.intending import PartialFailure

    flights = asset("raw_flights", DAILY_2013)
    attempt = begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")
    (tmp_path / "lake").mkdir()
    partly = PartialFailure(error="ValueError: no", traceback="…", reasons={"2013-01-02": WHY})
    ready = Ready(attempt, tmp_path / "lake", without=["2013-01-02"], partly=partly)
    ready.finish(gateway)
    run = Run.objects.get()
    assert (run.state, run.error, run.error_kind) == (RunState.FAILED, "ValueError: no", "code")
    assert states(run) == {
        "2013-01-01": "succeeded", "2013-01-02": "failed", "2013-01-03": "succeeded",
    }  # fmt: skip
    assert run.attempts.get().traceback == "…"
    assert run.code_failures == 1
    assert stored_outlets(run.attempts.get())[0].partitions == []
