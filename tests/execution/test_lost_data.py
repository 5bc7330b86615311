"""Lost or changed data is noticed in its place, and partitions can be forgotten."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.questions import Questions
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.forgetting import forget_partitions
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.verifying import verify_partitions
from assets_app.models import Asset, AssetPartition, FailureKind, Gateway, Materialization, Run
from slicewise.io import recorded
from slicewise.io.file import FileStorage
from slicewise.storage import StorageError, TryAgainError
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.factories import DAILY_2013, asset, outlet_of, person
from tests.partition_records import counts_agree_with_partitions

DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_PAUSE_SECONDS", 0.0)


@pytest.fixture
def days(alice: User, gateway: Gateway, tmp_path: Path) -> Asset:
    """Create three days that runs have published, each a file of ten bytes."""
    day_asset = asset("days", DAILY_2013, canonical_uri=f"file://localhost{tmp_path}/days")
    for day in DAYS:
        make(day_asset, day, alice, gateway)
        folder = tmp_path / "days" / f"partition={day}"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"0123456789")
        (folder / "_slicewise-1-1").touch()
    return day_asset


def make(of: Asset, day: str, user: User, gateway: Gateway) -> Run:
    run = materialize(MaterializeRequest(asset=of, selection=day), user=user).runs.get()
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    staged = [{"key": day, "path": f"partition={day}", "rows": 3, "bytes": 10}]
    assert attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged)])
    assert ending.succeed(attempt.row)
    return run


def folder_of(of: Asset, day: str) -> Path:
    return Path(of.canonical_uri.removeprefix("file://localhost")) / f"partition={day}"


def differing(of: Asset, user: User, selection: str = "") -> dict[str, str]:
    verification = verify_partitions(of, selection, user=user)
    return {difference.key: difference.reason for difference in verification.differing}


def test_unchanged_data_does_not_differ(days: Asset, alice: User) -> None:
    assert verify_partitions(days, "", user=alice).compared == 3
    assert differing(days, alice) == {}


def test_missing_folders_missing_files_and_other_sizes_differ(days: Asset, alice: User) -> None:
    (folder_of(days, DAYS[0]) / "part-0.parquet").unlink()  # the marker is left
    for file in folder_of(days, DAYS[1]).iterdir():
        file.unlink()
    folder_of(days, DAYS[1]).rmdir()
    (folder_of(days, DAYS[2]) / "part-0.parquet").write_bytes(b"0123")
    assert differing(days, alice) == {
        DAYS[0]: "no data",
        DAYS[1]: "no data",
        DAYS[2]: "4 bytes, 10 recorded",
    }
    assert list(differing(days, alice, DAYS[1])) == [DAYS[1]]


def test_an_asset_that_is_not_partitioned_is_verified_as_a_whole(alice: User) -> None:
    carriers = asset("carriers")
    with pytest.raises(InvalidRequest, match="carriers is not partitioned: leave the selection"):
        verify_partitions(carriers, DAYS[0], user=alice)


def test_a_host_that_does_not_see_the_data_says_so(days: Asset, alice: User) -> None:
    Asset.objects.update(canonical_uri="file://localhost/no/such/lake")
    days.refresh_from_db()
    with pytest.raises(InvalidRequest, match="not reachable from this host"):
        verify_partitions(days, "", user=alice)


@pytest.mark.parametrize("error", [TryAgainError("it did not start"), StorageError("no")])
def test_a_storage_that_does_not_answer_is_said(
    days: Asset, alice: User, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(storage: FileStorage) -> bool:
        raise error

    monkeypatch.setattr(FileStorage, "is_reachable", refuse)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        verify_partitions(days, "", user=alice)


def test_a_runner_learns_what_is_on_record_of_what_it_reads_and_of_nothing_else(
    days: Asset, alice: User, gateway: Gateway
) -> None:
    asset("unread", DAILY_2013)
    week = asset("week", upstream={"days": None})
    run = materialize(MaterializeRequest(asset=week), user=alice).runs.get()
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    questions = Questions(attempt)

    def ask(name: str | None, keys: Any) -> dict[str, Any]:
        message = {"type": "ask", "question": "recorded", "asset": name, "keys": keys}
        return questions.answer(message)

    answer = ask("days", [DAYS[0], "2013-01-04"])
    assert answer == {"type": "answer", "recorded": {DAYS[0]: [3, 10, False]}}
    for name, keys in (("unread", [DAYS[0]]), ("days", "all"), ("days", ["\0"]), (None, [])):
        assert set(ask(name, keys)) == {"type", "error"}
    remade = materialize(MaterializeRequest(asset=days, selection=DAYS[0]), user=alice).runs.get()
    dispatch()
    again = attempts.begin(remade.pk, gateway)
    assert again is not None
    staged = [{"key": DAYS[0], "path": "partition=2013-01-01", "rows": 4, "bytes": 12}]
    assert attempts.intend_to_publish(again.row, [outlet_of(again, staged)])
    assert ask("days", [DAYS[0]])["recorded"] == {}  # it may be exchanged at any moment


def test_a_runner_learns_which_partitions_of_its_own_asset_are_there(
    days: Asset, alice: User, gateway: Gateway
) -> None:
    asset("other", DAILY_2013)
    run = materialize(MaterializeRequest(asset=days, selection="2013-01-05"), user=alice).runs.get()
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    questions = Questions(attempt)

    def ask(question: str, name: Any, keys: Any) -> dict[str, Any]:
        return questions.answer({"question": question, "asset": name, "keys": keys})

    keys = [DAYS[1], "2013-01-05", "2013-01-06"]
    answer = ask("present_partitions", "days", keys)
    assert answer == {"type": "answer", "present": [DAYS[1]]}
    assert ask("recorded", "days", keys)["recorded"] == {DAYS[1]: [3, 10, False]}
    for name, question_keys in (("other", keys), (None, keys), ("days", "all"), ("days", ["\0"])):
        assert set(ask("present_partitions", name, question_keys)) == {"type", "error"}


def test_lost_data_fails_a_run_at_once(days: Asset, alice: User, gateway: Gateway) -> None:
    week = asset("week", upstream={"days": None}, options={"retries": 5})
    run = materialize(MaterializeRequest(asset=week), user=alice).runs.get()
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    assert ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.DATA))
    run.refresh_from_db()
    assert (run.state, run.error_kind, run.attempt_count) == ("failed", "data", 1)


def test_forgotten_partitions_are_missing_with_their_history_and_their_data(
    days: Asset, alice: User
) -> None:
    assert forget_partitions(days, "2013-01-01..2013-01-02", user=alice) == list(DAYS[:2])
    states = dict(AssetPartition.objects.values_list("key", "state"))
    assert states == {DAYS[0]: "missing", DAYS[1]: "missing", DAYS[2]: "materialized"}
    counts_agree_with_partitions()
    assert Materialization.objects.count() == 3
    assert folder_of(days, DAYS[0]).exists()
    entry = AuditEntry.objects.get(action="forget partitions")
    assert (entry.subject, entry.detail["partitions"]) == ("days", 2)
    with pytest.raises(InvalidRequest, match="All selected partitions are missing"):
        forget_partitions(days, DAYS[0], user=alice)


def test_a_forgotten_partition_goes_on_counting_its_versions(
    days: Asset, alice: User, gateway: Gateway
) -> None:
    forget_partitions(days, DAYS[0], user=alice)
    make(days, DAYS[0], alice, gateway)
    versions = Materialization.objects.filter(partition__key=DAYS[0]).values_list(
        "version", flat=True
    )
    assert sorted(versions) == [1, 2]
    assert AssetPartition.objects.get(key=DAYS[0]).version == 2
    counts_agree_with_partitions()


def test_a_partition_that_a_run_holds_is_not_forgotten(days: Asset, alice: User) -> None:
    materialize(MaterializeRequest(asset=days, selection=DAYS[0]), user=alice)
    with pytest.raises(ConflictingRequest, match="Another run is materializing days 2013-01-01"):
        forget_partitions(days, "2013-01-01..2013-01-03", user=alice)
    assert set(AssetPartition.objects.values_list("state", flat=True)) == {"materialized"}


def test_an_operator_verifies_and_an_editor_forgets(days: Asset) -> None:
    operator, viewer = person("olga", Role.OPERATOR), person("vera", Role.VIEWER)
    assert verify_partitions(days, "", user=operator).compared == 3
    with pytest.raises(PermissionDenied):
        verify_partitions(days, "", user=viewer)
    with pytest.raises(PermissionDenied):
        forget_partitions(days, DAYS[0], user=operator)
    assert forget_partitions(days, DAYS[0], user=person("ed", Role.EDITOR)) == [DAYS[0]]
