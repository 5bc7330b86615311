"""The command line: output, acting person, and exit code."""

from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.core.management import CommandError, ManagementUtility, call_command
from django.utils import timezone

import slicewise
from accounts_app.management.command import SlicewiseCommand, duration_text, fact_text
from accounts_app.models import AuditEntry, User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.orphans import Orphan
from assets_app.execution.request.verifying import Verification
from assets_app.models import Asset, AssetPartition, Gateway, Run, RunAttempt, RunGroup, RunLog
from assets_app.queries.orphans import OrphanRow
from backfills_app.models import Backfill
from slicewise.io.recorded import Difference, PartitionRecord
from tests import factories
from tests.cli.commands import json_of, output_of, refusal
from tests.execution.conftest import make_gateway, sent
from tests.runtime_keys import found

__all__ = ["sent"]

JANUARY = ("raw_flights", "2013-01-01", "2013-01-31")

pytestmark = pytest.mark.usefixtures("ada", "raw_flights", "carriers", "sent")


def test_assets_are_listed() -> None:
    assert [asset_row["name"] for asset_row in json_of("assets", "list")] == [
        "carriers",
        "raw_flights",
    ]
    assert "raw_flights" in output_of("assets", "list")


def test_an_asset_is_shown() -> None:
    assert json_of("assets", "show", "raw_flights")["expected"] == 365
    assert "raw_flights" in output_of("assets", "show", "raw_flights")


def test_an_asset_is_paused_and_unpaused() -> None:
    output_of("assets", "pause", "raw_flights")
    assert Asset.objects.get(name="raw_flights").paused
    assert json_of("assets", "unpause", "raw_flights")["paused"] is False
    assert [entry.action for entry in AuditEntry.objects.all()] == ["unpause", "pause"]


def test_a_pause_names_all_assets_of_the_function() -> None:
    factories.together("split", ["train", "test"])
    assert output_of("assets", "pause", "train") == "Paused: test, train.\n"
    assert output_of("assets", "pause", "train") == "Paused: train.\n"  # nothing changes
    assert output_of("assets", "unpause", "test") == "Unpaused: test, train.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("assets", "show"),
        ("assets", "materialize"),
        ("assets", "schedule"),
        ("partitions", "list"),
        ("runs", "list", "--asset"),
        ("backfill", "preview", "--selection", "2013", "--assets"),
        ("backfill", "preview"),
    ],
)
def test_a_name_that_no_asset_has_is_told_with_the_nearest(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    dates = ("2013-01-01", "2013-01-02") if arguments == ("backfill", "preview") else ()
    code, error = refusal(capsys, *arguments, "raw_flight", *dates)
    sentence = "There is no asset 'raw_flight'. Did you mean 'raw_flights'?"
    assert (code, sentence in error) == (2, True)


def test_partitions_are_materialized() -> None:
    body = json_of("assets", "materialize", "raw_flights", "--partition", "2013-01-01..2013-01-03")
    assert body["run_count"] == Run.objects.count() == 3
    assert json_of("assets", "materialize", "carriers")["run_count"] == 1


def test_partitions_are_listed_with_their_states() -> None:
    output_of("assets", "materialize", "raw_flights", "--partition", "2013-01-02")
    listed = json_of("partitions", "raw_flights", "2013-01-01..2013-01-03")
    assert [partition["state"] for partition in listed] == ["missing", "queued", "missing"]
    queued = json_of("partitions", "raw_flights", "--state", "queued")
    assert [partition["key"] for partition in queued] == ["2013-01-02"]
    assert len(json_of("partitions", "raw_flights")) == 100
    assert len(json_of("partitions", "raw_flights", "--limit", "0")) == 365
    assert "2013-01-02" in output_of("partitions", "raw_flights", "2013-01")


def test_partitions_are_forgotten_and_compared_with_their_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    AssetPartition.objects.create(
        asset=Asset.objects.get(name="raw_flights"),
        identity=Asset.objects.get(name="raw_flights").identity,
        key="2013-01-02",
        state="materialized",
        version=1,
    )
    code, error = refusal(capsys, "partitions", "verify", "raw_flights")
    assert (code, "no installed storage reads" in error) == (2, True)
    assert "1 partition of raw_flights missing again" in output_of(
        "partitions", "forget", "raw_flights", "2013-01-02"
    )
    assert json_of("partitions", "list", "raw_flights", "2013-01-02")[0]["state"] == "missing"
    code, error = refusal(capsys, "partitions", "forget", "raw_flights", "2013-01-02")
    assert (code, "All selected partitions are missing" in error) == (2, True)


def test_partitions_that_a_definition_lost_are_listed_and_removed_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asset = Asset.objects.get(name="raw_flights")
    Asset.objects.filter(pk=asset.pk).update(canonical_uri=f"file://localhost{tmp_path}")
    AssetPartition.objects.create(
        asset=asset, identity="0" * 16, key="2013", state="materialized", version=1
    )
    assert "no run has written it" in output_of("partitions", "orphans", "raw_flights")
    # Nothing of it can be removed, so nobody is asked.
    [orphan] = json_of("partitions", "orphans", "raw_flights", "--remove")
    assert (orphan["key"], orphan["kept"]) == ("2013", "no run has written it")
    with patch("assets_app.management.commands.partitions.find_orphans") as find_orphans:
        row = OrphanRow(1, "0" * 16, "2013", 3, 10, None, False, 1, "year=2013", "file:/", "1-1")
        find_orphans.return_value = [Orphan(row)]
        code, error = refusal(capsys, "partitions", "orphans", "raw_flights", "--remove")
    assert (code, "give --yes" in error) == (1, True)


def test_a_backfill_is_previewed_created_listed_shown_and_canceled() -> None:
    assert json_of("backfill", "preview", *JANUARY, "--strategy", "10")["runs"] == 4
    assert not Backfill.objects.exists()
    created = json_of("backfill", "create", *JANUARY, "--description", "January")
    assert created["counts"]["total"] == 31
    number = str(created["id"])
    assert [backfill["id"] for backfill in json_of("backfill", "list")] == [created["id"]]
    assert "January" in output_of("backfill", "show", number)
    assert json_of("backfill", "cancel", number)["state"] in ("canceling", "canceled")
    assert "raw_flights" in output_of("backfill", "list", "--asset", "raw_flights")


def test_runs_are_listed_shown_and_canceled() -> None:
    output_of("assets", "materialize", "carriers")
    run = str(Run.objects.get().pk)
    assert [run_row["asset"] for run_row in json_of("runs", "list", "--state", "queued")] == [
        "carriers"
    ]
    assert "carriers" in output_of("runs", "list")
    assert "queued" in output_of("runs", "show", run)
    assert "canceled" in output_of("runs", "cancel", run)


def test_a_log_is_printed_as_it_came() -> None:
    output_of("assets", "materialize", "carriers")
    run, now = Run.objects.get(), timezone.now()
    attempt = RunAttempt.objects.create(run=run, number=1, token=uuid4(), started_at=now)
    for sequence in range(450):
        RunLog.objects.create(attempt=attempt, sequence=sequence, text=f"{sequence},")
    assert output_of("runs", "logs", str(run.pk)) == "".join(f"{number}," for number in range(450))
    assert len(json_of("runs", "logs", str(run.pk))) == 450


def test_a_log_of_several_attempts_has_a_line_before_each() -> None:
    output_of("assets", "materialize", "carriers")
    run, now = Run.objects.get(), timezone.now()
    for number in (1, 2):
        outcome = {"outcome": "lost", "ended_at": now} if number == 1 else {}
        attempt = RunAttempt.objects.create(
            run=run, number=number, token=uuid4(), started_at=now, **outcome
        )
        RunLog.objects.create(attempt=attempt, sequence=1, text=f"try {number}\n")
    stamp = f"{now:%Y-%m-%d %H:%M:%S} UTC"
    assert output_of("runs", "logs", str(run.pk)) == (
        f"======== Attempt 1, started {stamp}, lost {stamp} ========\ntry 1\n"
        f"======== Attempt 2, started {stamp}, running ========\ntry 2\n"
    )


def test_following_a_log_ends_with_the_run() -> None:
    output_of("assets", "materialize", "carriers")
    run = str(Run.objects.get().pk)
    output_of("runs", "cancel", run)
    printed, noted = StringIO(), StringIO()
    call_command("runs", "logs", "-f", run, stdout=printed, stderr=noted)
    assert printed.getvalue() == ""
    assert f"slicewise runs show {run}" in noted.getvalue()


def test_waiting_for_work_that_is_not_done_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ada: User
) -> None:
    from assets_app.execution.queue.control import cancel_group
    from assets_app.management.commands import assets
    from assets_app.management.request_progress import request_progress

    def canceled_meanwhile(group: RunGroup) -> Any:
        cancel_group(group, user=ada)
        return request_progress(group)

    monkeypatch.setattr(assets, "request_progress", canceled_meanwhile)
    code, error = refusal(capsys, "assets", "materialize", "carriers", "--wait")
    assert code == 1
    assert "1 of 1 partition was not materialized" in error


def test_waiting_for_runs_that_fail_tells_each_error_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, worker: Gateway
) -> None:
    errors = iter(["ValueError: odd\nmore", "ValueError: odd", *(f"Error {n}" for n in range(6))])

    def fail_all(_: float) -> None:
        dispatch()
        for run in Run.objects.filter(state="dispatched").order_by("pk"):
            attempt = attempts.begin(run.pk, worker)
            assert attempt is not None
            assert ending.fail(attempt.row, Failure(error=next(errors)))

    monkeypatch.setattr("slicewise_server.web.commands.progress.time.sleep", fail_all)
    days = ("--partition", "2013-01-01..2013-01-08")
    code, error = refusal(capsys, "assets", "materialize", "raw_flights", *days, "--wait")
    first = Run.objects.order_by("pk").first()
    assert first is not None
    error_lines = [line for line in error.splitlines() if line.startswith(("run ", "and "))]
    assert error_lines == [
        f"run {first.pk}: ValueError: odd",
        *(f"run {first.pk + 2 + number}: Error {number}" for number in range(4)),
        "and 2 other errors; see: slicewise runs list",
    ]
    assert (code, "8 of 8 partitions were not materialized." in error) == (1, True)


@pytest.fixture
def worker(db: None) -> Gateway:
    return make_gateway("scheduled", slots=100)


@pytest.fixture
def customers(db: None) -> Asset:
    return factories.asset("customers", slicewise.PartitionAtRuntime(name="active_customers"))


def test_waiting_for_a_run_that_finds_partitions_says_how_many_it_found(
    customers: Asset, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_two(_: float) -> None:
        dispatch()
        attempt = attempts.begin(Run.objects.get().pk, worker)
        assert attempt is not None
        assert attempts.intend_to_publish(attempt.row, [], found("acme", "globex"))
        assert ending.succeed(attempt.row)

    monkeypatch.setattr("slicewise_server.web.commands.progress.time.sleep", find_two)
    noted = StringIO()
    call_command("assets", "materialize", "customers", "--wait", stdout=noted, stderr=noted)
    assert noted.getvalue().splitlines() == [
        "1 run to discover partitions.",
        "2 partitions discovered and materialized.",
    ]


def test_waiting_for_a_run_that_fails_to_find_partitions_exits_with_1(
    customers: Asset,
    worker: Gateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: float) -> None:
        dispatch()
        attempt = attempts.begin(Run.objects.get().pk, worker)
        assert attempt is not None
        assert ending.fail(attempt.row, Failure(error="ValueError: no"))

    monkeypatch.setattr("slicewise_server.web.commands.progress.time.sleep", fail)
    code, error = refusal(capsys, "assets", "materialize", "customers", "--wait")
    assert (code, f"run {Run.objects.get().pk}: ValueError: no\n" in error) == (1, True)


def test_an_unpartitioned_asset_is_named_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    output_of("assets", "materialize", "carriers")
    assert "the whole asset  queued" in output_of("partitions", "list", "carriers")
    assert "the whole asset pending" in output_of("runs", "show", str(Run.objects.get().pk))
    with patch("assets_app.management.commands.partitions.verify_partitions") as verified:
        lost = Difference(key="", path="", recorded=PartitionRecord(bytes=3), actual=None)
        verified.return_value = Verification(1, [lost])
        said_of = StringIO()
        with pytest.raises(
            CommandError, match=r"^1 of 1 partition differs from the record\. Materialize"
        ):
            call_command("partitions", "verify", "carriers", stdout=said_of)
    assert "the whole asset  no data" in said_of.getvalue()


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
    first, second = json_of("sync"), json_of("sync", "regions")
    assert (first[0]["changed"], first[0]["assets"]) == (True, 1)
    assert second[0]["changed"] is False


def test_sync_warns_of_assets_in_one_place(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "regions.py").write_text(
        "from slicewise import asset\n\n@asset(uri='file:///tmp/x')\ndef one(): ...\n"
        "@asset(uri='file:///tmp/x')\ndef two(): ...\n"
    )
    settings.BUNDLES = {"regions": tmp_path}
    noted = StringIO()
    call_command("sync", stdout=StringIO(), stderr=noted)
    assert [line.partition(": each")[0].strip() for line in noted.getvalue().splitlines()] == [
        "asset 'one': warning: 'two' has the same uri",
        "asset 'two': warning: 'one' has the same uri",
    ]


def test_sync_exits_with_1_when_a_file_is_broken(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    settings.BUNDLES = {"broken": tmp_path}
    code, error = refusal(capsys, "sync")
    assert code == 1
    assert "broken.py" in error


def test_sync_names_the_assets_that_a_broken_file_leaves_at_their_last_version(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any
) -> None:
    header = "from slicewise import asset\n"
    (tmp_path / "both.py").write_text(
        f"{header}@asset\ndef first(): ...\n@asset\ndef second(): ...\n"
    )
    (tmp_path / "other.py").write_text(f"{header}@asset\ndef third(): ...\n")
    settings.BUNDLES = {"trials": tmp_path}
    assert json_of("sync")[0]["kept"] == []
    (tmp_path / "both.py").write_text("1 / 0\n")
    code, error = refusal(capsys, "sync")
    assert code == 1
    assert "At their last good version: first, second\n" in error


def test_sync_says_which_data_the_new_definitions_do_not_have(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any
) -> None:
    declared = "Asset('stock', uri='file:///tmp/stock', partition=PartitionBySequence({}))\n"
    file = tmp_path / "stock.py"
    settings.BUNDLES = {"trials": tmp_path}
    header = "from slicewise import Asset, PartitionBySequence\n"
    file.write_text(header + declared.format(["north", "south", "west"]))
    assert json_of("sync")[0]["orphans"] == {}
    call_command("assets", "report-write", "stock", "--partition", "*", stdout=StringIO())
    file.write_text(header + declared.format(["north"]))
    capsys.readouterr()
    call_command("sync", "trials")
    warning = "  stock has data of 2 partitions that its definition does not have: see slicewise"
    assert warning + " partitions orphans stock\n" in capsys.readouterr().err
    file.write_text(header + declared.format(["north", "west"]))
    assert json_of("sync")[0]["orphans"] == {"stock": 1}
    assert json_of("sync")[0]["orphans"] == {}


@pytest.mark.parametrize("command", ["assets", "partitions", "backfill", "runs", "sync"])
def test_help_says_how_to_use_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", command, "--help"]).execute()
    assert ended.value.code == 0
    assert "usage" in capsys.readouterr().out


def test_facts_are_written_for_people() -> None:
    progress = {"percent": 12, "seconds_left": 11088.313932467741, "eta": None}
    assert fact_text("progress", progress) == "percent 12, seconds_left 3 h 5 min"
    days = [f"2013-01-{day:02}" for day in range(1, 32)]
    assert fact_text("days", days).endswith("2013-01-05 and 26 more")
    assert [duration_text(number) for number in (0.4, 250, 90_000)] == [
        "0.4 s",
        "4 min 10 s",
        "1 d 1 h",
    ]


def test_a_run_is_shown_with_its_partitions_folded() -> None:
    output_of(
        "assets", "materialize", "raw_flights", "--partition", "2013-01", "--strategy", "range"
    )
    shown = output_of("runs", "show", str(Run.objects.get().pk))
    assert "2013-01-01 pending" in shown
    assert "and 26 more" in shown
    assert "{" not in shown


def test_numbers_in_facts_and_tables_fit_for_people() -> None:
    assert fact_text("progress", {"per_second": 0.94837261}) == "per_second 0.948"
    assert fact_text("params", {"share": 0.1 + 0.2, "limit": 1234.5678}) == (
        "share 0.3, limit 1234.5678"
    )
    estimate = {"seconds": 3601.0, "low": 59.6, "high": 7300.0, "runs_seen": 4}
    assert fact_text("estimate", estimate) == (
        "seconds 1 h 0 min, low 59.6 s, high 2 h 2 min, runs_seen 4"
    )
    out = StringIO()
    command = SlicewiseCommand(stdout=out)
    rows: list[list[object]] = [[0.1 + 0.2, 3601.0, None, 7], [123456.789, 0.05, "x", 0]]
    command.print_table(("rate", "seconds", "note", "runs"), rows)
    shown = out.getvalue().split()
    assert shown == ["rate", "seconds", "note", "runs", "0.3", "1", "h", "0", "min", "7",
                     "123456.789", "0.05", "s", "x", "0"]  # fmt: skip
