"""The command line: what it prints, whom it acts as, and what its exit code says."""

import json
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.core.management import ManagementUtility, call_command
from django.db import connections
from django.utils import timezone

from accounts_app.models import AuditEntry, User
from assets_app.models import Asset, Run, RunAttempt, RunGroup, RunLog
from backfills_app.models import Backfill

JANUARY = ("raw_flights", "2013-01-01", "2013-01-31")

pytestmark = pytest.mark.usefixtures("ada", "raw_flights", "carriers")


def said(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def told(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and standard error, as a shell sees them."""
    # A process that ends closes its connections; the test's transaction is on one of them.
    with patch.object(connections, "close_all"), pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", *arguments]).execute()
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert isinstance(ended.value.code, int)
    return ended.value.code, error


def test_assets_are_listed() -> None:
    assert [each["name"] for each in told("assets", "list")] == ["carriers", "raw_flights"]
    assert "raw_flights" in said("assets", "list")


def test_an_asset_is_shown() -> None:
    assert told("assets", "show", "raw_flights")["expected"] == 365
    assert "raw_flights" in said("assets", "show", "raw_flights")


def test_an_asset_is_paused_and_unpaused() -> None:
    said("assets", "pause", "raw_flights")
    assert Asset.objects.get(name="raw_flights").paused
    assert told("assets", "unpause", "raw_flights")["paused"] is False
    assert [entry.action for entry in AuditEntry.objects.all()] == ["unpause", "pause"]


def test_partitions_are_materialized() -> None:
    body = told("assets", "materialize", "raw_flights", "--partition", "2013-01-01..2013-01-03")
    assert body["run_count"] == Run.objects.count() == 3
    assert told("assets", "materialize", "carriers")["run_count"] == 1


def test_partitions_are_listed_with_their_states() -> None:
    said("assets", "materialize", "raw_flights", "--partition", "2013-01-02")
    listed = told("partitions", "raw_flights", "2013-01-01..2013-01-03")
    assert [each["state"] for each in listed] == ["missing", "queued", "missing"]
    held = told("partitions", "raw_flights", "--state", "queued")
    assert [each["key"] for each in held] == ["2013-01-02"]
    assert len(told("partitions", "raw_flights")) == 100
    assert len(told("partitions", "raw_flights", "--limit", "0")) == 365
    assert "2013-01-02" in said("partitions", "raw_flights", "2013-01")


def test_a_backfill_is_previewed_created_listed_shown_and_canceled() -> None:
    assert told("backfill", "preview", *JANUARY, "--strategy", "10")["runs"] == 4
    assert not Backfill.objects.exists()
    created = told("backfill", "create", *JANUARY, "--description", "January")
    assert created["counts"]["total"] == 31
    number = str(created["id"])
    assert [each["id"] for each in told("backfill", "list")] == [created["id"]]
    assert "January" in said("backfill", "show", number)
    assert told("backfill", "cancel", number)["state"] in ("canceling", "canceled")
    assert "raw_flights" in said("backfill", "list", "--asset", "raw_flights")


def test_runs_are_listed_shown_and_canceled() -> None:
    said("assets", "materialize", "carriers")
    run = str(Run.objects.get().pk)
    assert [each["asset"] for each in told("runs", "list", "--state", "queued")] == ["carriers"]
    assert "carriers" in said("runs", "list")
    assert "queued" in said("runs", "show", run)
    assert "canceled" in said("runs", "cancel", run)


def test_a_log_is_printed_as_it_came() -> None:
    said("assets", "materialize", "carriers")
    run, now = Run.objects.get(), timezone.now()
    attempt = RunAttempt.objects.create(
        run=run, number=1, token=uuid4(), lease_until=now, started_at=now
    )
    for sequence in range(450):
        RunLog.objects.create(attempt=attempt, sequence=sequence, text=f"{sequence},")
    assert said("runs", "logs", str(run.pk)) == "".join(f"{number}," for number in range(450))
    assert len(told("runs", "logs", str(run.pk))) == 450


def test_following_a_log_ends_with_the_run() -> None:
    said("assets", "materialize", "carriers")
    run = str(Run.objects.get().pk)
    said("runs", "cancel", run)
    assert said("runs", "logs", "-f", run) == ""


def test_waiting_for_work_that_is_not_done_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ada: User
) -> None:
    from assets_app.execution.control import cancel_group
    from assets_app.management.commands import assets

    def canceled_meanwhile(group: RunGroup) -> Any:
        cancel_group(group, user=ada)
        return standing(group)

    standing = assets.standing_of
    monkeypatch.setattr(assets, "standing_of", canceled_meanwhile)
    code, error = refusal(capsys, "assets", "materialize", "carriers", "--wait")
    assert code == 1
    assert "1 of 1 partitions were not made" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("assets", "show", "nothing"),
        ("assets", "pause", "nothing"),
        ("assets", "materialize", "nothing"),
        ("assets", "materialize", "raw_flights"),
        ("assets", "materialize", "raw_flights", "--partition", "2013-02-30"),
        ("assets", "materialize", "carriers", "--partition", "2013"),
        ("assets", "materialize", "carriers", "--params", "[]"),
        ("assets", "materialize", "carriers", "--params", '{"x": 1}'),
        ("assets",),
        ("assets", "fly"),
        ("partitions", "nothing"),
        ("partitions", "raw_flights", "2013.."),
        ("partitions", "raw_flights", "--state", "gone"),
        ("partitions", "raw_flights", "--limit", "-1"),
        ("backfill", "create", "nothing", "2013-01-01", "2013-01-31"),
        ("backfill", "create", "raw_flights", "2013-02-01", "2013-01-31"),
        ("backfill", "create", "raw_flights", "2099-01-01", "2099-01-31"),
        ("backfill", "create", "raw_flights", "yesterday", "today"),
        ("backfill", "create", *JANUARY, "--max-active-runs", "0"),
        ("backfill", "create", *JANUARY, "--max-active-runs", "many"),
        ("backfill", "create", *JANUARY, "--strategy", "half"),
        ("backfill", "create", *JANUARY, "--existing", "some"),
        ("backfill", "create", "carriers", "2013-01-01", "2013-01-31"),
        ("backfill", "show", "1"),
        ("backfill", "cancel", "99999999999999999999999"),
        ("runs", "show", "0"),
        ("runs", "logs", "one"),
        ("runs", "list", "--asset", "nothing"),
        ("sync", "nothing"),
    ],
    ids=" ".join,
)
def test_a_wrong_request_exits_with_2_and_creates_nothing(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, error = refusal(capsys, *arguments)
    assert code == 2, error
    assert error.strip()
    assert not Backfill.objects.exists()
    assert not Run.objects.exists()


def test_whoever_is_named_acts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, vera: User
) -> None:
    code, error = refusal(capsys, "backfill", "create", *JANUARY, "--as", "vera")
    assert (code, "vera may not backfill" in error) == (2, True)
    monkeypatch.setenv("SLICEWISE_USER", "vera")
    assert refusal(capsys, "assets", "pause", "carriers")[0] == 2
    assert refusal(capsys, "assets", "list", "--as", "nobody")[0] == 2


def test_nobody_acts_where_there_is_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    User.objects.update(is_superuser=False)
    code, error = refusal(capsys, "assets", "materialize", "carriers")
    assert (code, "createsuperuser" in error) == (2, True)


def test_sync_tells_what_a_bundle_declares(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "regions.py").write_text(
        "from slicewise import asset\n\n@asset(uri='file:///tmp/regions')\ndef regions(): ...\n"
    )
    settings.BUNDLES = {"regions": tmp_path}
    first, second = told("sync"), told("sync", "regions")
    assert (first[0]["changed"], first[0]["assets"]) == (True, 1)
    assert second[0]["changed"] is False


def test_sync_exits_with_1_when_a_file_is_broken(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    settings.BUNDLES = {"broken": tmp_path}
    code, error = refusal(capsys, "sync")
    assert code == 1
    assert "broken.py" in error


@pytest.mark.parametrize("command", ["assets", "partitions", "backfill", "runs", "sync"])
def test_help_says_how_to_use_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", command, "--help"]).execute()
    assert ended.value.code == 0
    assert "usage" in capsys.readouterr().out
