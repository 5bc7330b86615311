"""Backfills on the command line: output, acting person, and exit code."""

from typing import Any

import pytest
from django.core.management import call_command

from accounts_app.models import AuditEntry, Grant, User
from assets_app.models import Asset, Gateway, Run
from backfills_app.models import Backfill
from backfills_app.services.advance.advancing import advance
from tests.backfills.conftest import worker
from tests.backfills.driven_backfills import following, run_all
from tests.cli.commands import json_of, notes_of, output_of, refusal
from tests.execution.conftest import sent
from tests.factories import DAILY_2013, asset
from tests.pages.run_records import renewed_code

__all__ = ["sent", "worker"]

DAYS = ("raw_flights", "2013-01-01", "2013-01-06")

pytestmark = pytest.mark.usefixtures("ada", "raw_flights", "carriers", "sent")


@pytest.fixture
def number() -> str:
    return str(json_of("backfill", "create", *DAYS)["id"])


def test_a_request_says_all_that_the_form_says() -> None:
    body = json_of(
        "backfill", "create", "raw_flights", "--selection", "2013-02", "--order", "newest",
        "--existing", "all", "--allow-holes", "--start-at", "2099-01-01", "--strategy", "7",
        "--max-active-runs", "2", "--description", "why", "--downstream", "none",
    )  # fmt: skip
    assert (body["order"], body["allow_holes"], body["strategy"]) == ("newest", True, 7)
    assert body["scheduled_date"] == "2099-01-01T00:00:00Z"
    assert body["logical_dates"] == "2013-02-01..2013-02-28"


def test_a_preview_tells_of_each_asset() -> None:
    text = output_of("backfill", "preview", *DAYS)
    assert "upstream_missing" in text
    (asset,) = json_of("backfill", "preview", *DAYS)["assets"]
    assert (asset["asset"], asset["to_materialize"]) == ("raw_flights", 6)
    assert not Backfill.objects.exists()


def test_a_preview_names_the_missing_upstream_partitions() -> None:
    asset("weather", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None, "weather": None})
    asked = ("backfill", "preview", *DAYS, "--downstream", "delays")
    expected = "delays needs 6 missing partitions of weather: 2013-01-01 to 2013-01-06"
    assert expected in output_of(*asked)
    assert json_of(*asked)["assets"][1]["missing_by_asset"] == [
        {"asset": "weather", "partitions": 6, "first": "2013-01-01", "last": "2013-01-06"}
    ]


def test_several_assets_are_named_by_options_and_dates_by_words() -> None:
    following("delays", DAILY_2013, of={"raw_flights": None})
    Asset.objects.update(group="flights")
    days, counts = DAYS[1:], {"raw_flights": 6, "delays": 6}
    for chosen in (
        ("--assets", "raw_flights,delays", *days),
        ("--assets", "raw_flights", "--assets", "delays", *days),
        (*days, "--assets", "delays,raw_flights"),
        ("delays", *days, "--upstream"),
        ("raw_flights", *days, "--downstream", "all"),
    ):
        plan = json_of("backfill", "preview", *chosen)
        assert {asset["asset"]: asset["to_materialize"] for asset in plan["assets"]} == counts
        assert [asset["layer"] for asset in plan["assets"]] == [1, 2]
    text = output_of(
        "backfill", "create", "--group", "flights", "--selection", "2013-01-01..2013-01-06"
    )
    assert "and 2 more assets" in text
    number = str(Backfill.objects.get().pk)
    shown = json_of("backfill", "show", number)
    assert shown["chosen_by"] == {
        "asset_group": "flights", "selection": "2013-01-01..2013-01-06",
    }  # fmt: skip
    roles = {asset["asset"]: (asset["role"], asset["total"]) for asset in shown["assets"]}
    assert roles == dict.fromkeys(counts, ("chosen", 6)) | {"carriers": ("chosen", 1)}
    shown_text = output_of("backfill", "show", number)
    assert "role" in shown_text
    assert "relative_fileloc" not in shown_text
    assert not [line for line in shown_text.splitlines() if line.startswith("asset  ")][:-1]
    assert [backfill["id"] for backfill in json_of("backfill", "list", "--asset", "delays")] == [
        int(number)
    ]
    assert len(json_of("backfill", "clone", number, "2013-01-01", "2013-01-02")["assets"]) == 3


def test_one_is_paused_resumed_changed_canceled_and_deleted(number: str) -> None:
    assert output_of("backfill", "pause", number) == f"Backfill {number} is paused.\n"
    changed = json_of("backfill", "change", number, "--max-active-runs", "9", "--priority", "-2")
    assert (changed["max_active_runs"], changed["priority"]) == (9, -2)
    assert json_of("backfill", "resume", number)["state"] == "creating"
    assert output_of("backfill", "cancel", number) == f"Backfill {number} is canceled.\n"
    assert output_of("backfill", "delete", number) == f"Backfill {number} is deleted.\n"
    assert json_of("backfill", "list") == []
    assert [backfill["id"] for backfill in json_of("backfill", "list", "--deleted")] == [
        int(number)
    ]
    assert json_of("backfill", "show", number)["deleted"] is True


def test_several_are_done_and_each_refusal_is_told(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    second_number = str(json_of("backfill", "create", *DAYS)["id"])
    assert json_of("backfill", "pause", number, second_number)["done"] == [
        int(number),
        int(second_number),
    ]
    output_of("backfill", "resume", number)
    code, error = refusal(capsys, "backfill", "resume", number, second_number)
    assert (code, "is not paused" in error, "1 of 2 were refused" in error) == (1, True, True)
    assert Backfill.objects.get(pk=second_number).state == "creating"


def test_failed_partitions_are_shown_and_retried(number: str, worker: Gateway) -> None:
    run_all(worker, failing=("2013-01-02",))
    assert "ValueError: no" in output_of("backfill", "show", number)
    shown = json_of("backfill", "show", number)
    assert shown["failures"][0]["runs"] == 1
    renewed_code(Asset.objects.get(name="raw_flights"))
    assert notes_of("backfill", "retry", number, "--code", "newest") == ""
    run_all(worker, failing=("2013-01-02",))
    renewed_code(Asset.objects.get(name="raw_flights"), "e")
    assert "raw_flights has newer code: --code newest" in notes_of("backfill", "retry", number)
    assert json_of("backfill", "show", number)["state"] == "running"
    run_all(worker)
    assert json_of("backfill", "show", number)["state"] == "succeeded"


def test_a_run_says_which_backfill_asked_for_it_and_which_code_it_has(number: str) -> None:
    advance()
    run = Run.objects.order_by("pk").first()
    assert run is not None
    shown = output_of("runs", "show", str(run.pk))
    assert f"{run.group_id} (backfill {Backfill.objects.get().name})" in shown
    version = run.producer_version.bundle_version
    assert f" of version {version.pk} ({version.digest[:12]})" in shown


def test_skipped_partitions_are_shown_with_the_holding_backfill(number: str) -> None:
    advance()
    second = str(json_of("backfill", "create", "raw_flights", "2013-01-01", "2013-01-07")["id"])
    advance()
    text = output_of("backfill", "show", second)
    assert "in_flight" in text
    assert Backfill.objects.get(pk=number).name in text


def test_a_clone_is_asked_for_with_what_is_to_be_different(number: str) -> None:
    clone = json_of("backfill", "clone", number, "--existing", "all")
    assert (clone["logical_dates"], clone["existing"]) == ("2013-01-01..2013-01-06", "all")
    clone = json_of("backfill", "clone", number, "2013-01-02", "2013-01-03")
    assert clone["logical_dates"] == "2013-01-02..2013-01-03"


def test_waiting_for_a_retry_tells_by_the_exit_code_what_came_of_it(
    number: str,
    worker: Gateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_all(worker, failing=("2013-01-02",))
    ends: list[tuple[str, ...]] = [(), ("2013-01-02",)]

    def pass_time(_: float) -> None:
        run_all(worker, failing=ends.pop())

    monkeypatch.setattr("slicewise_server.web.commands.progress.time.sleep", pass_time)
    code, error = refusal(capsys, "backfill", "retry", number, "--wait")
    assert (code, "1 of 6 partitions was not materialized" in error) == (1, True)
    run = json_of("backfill", "show", number)["failures"][0]["examples"][0]["run"]
    assert f"run {run}: ValueError: no\n" in error
    assert json_of("backfill", "retry", number, "--wait")["state"] == "succeeded"


def test_the_end_tells_existing_partitions_from_partitions_left_to_other_runs(
    number: str,
    worker: Gateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_all(worker)
    assert json_of("backfill", "show", number)["state"] == "succeeded"
    output_of("backfill", "create", "raw_flights", "2013-01-11", "2013-01-13")
    advance()
    monkeypatch.setattr(
        "slicewise_server.web.commands.progress.time.sleep", lambda _: run_all(worker)
    )
    capsys.readouterr()
    call_command("backfill", "create", "raw_flights", "2013-01-05", "2013-01-14", "--wait")
    assert (
        "succeeded: 5 materialized, 2 skipped as existing, 3 left to other runs."
        in capsys.readouterr().err
    )


def test_a_request_that_would_run_nothing_is_refused(
    number: str, worker: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    run_all(worker)
    code, error = refusal(capsys, "backfill", "create", *DAYS)
    assert (code, "are materialized. Choose “all”" in error) == (2, True)
    assert refusal(capsys, "backfill", "clone", number)[0] == 2
    assert len(json_of("backfill", "list")) == 1


def test_partitions_with_a_failed_upstream_count_as_not_materialized(
    number: str,
    worker: Gateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    following("delays", DAILY_2013, of={"raw_flights": None})
    run_all(worker, failing=("2013-01-02",))
    monkeypatch.setattr(
        "slicewise_server.web.commands.progress.time.sleep", lambda _: run_all(worker)
    )
    days = ("delays", "2013-01-01", "2013-01-03")
    code, error = refusal(capsys, "backfill", "create", *days, "--wait")
    assert (code, "partially_failed: 1 of 3 partitions was not materialized" in error) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pause", "99"), "There is no backfill 99."),
        (("pause", "0"), "There is no backfill 0."),
        (("pause", "1" * 30), "There is no backfill"),
        (("pause", "1" * 30, "1"), "There is no backfill"),
        (("resume", "NUMBER"), "is not paused: "),
        (("retry", "NUMBER"), "The backfill has no partitions to retry."),
        (("retry", "NUMBER", "--code", "older"), "invalid choice"),
        (("delete", "NUMBER"), "Only a backfill that has ended can be deleted"),
        (("change", "NUMBER"), "The request changes nothing"),
        (("change", "NUMBER", "--max-active-runs", "0"), "Between 1 and 1000, not 0."),
        (("change", "NUMBER", "--order", "random"), "invalid choice"),
        (("clone", "NUMBER", "yesterday", "today"), "start: "),
        (("create", "raw_flights"), "Name a partition"),
        (("create", *DAYS, "--selection", "2013"), "not both"),
        (("create", *DAYS, "--assets", "raw_flights"), "not both: raw_flights"),
        (("create", "--group", "none", *DAYS[1:]), "No asset is in group 'none'."),
        (("preview", "--tag", "none", *DAYS[1:]), "No asset has the tag 'none'."),
        (("create", "--assets", "raw_flights,nobody", *DAYS[1:]), "There is no asset 'nobody'."),
        (("create",), "Name an asset."),
        (("pause",), "required: BACKFILL"),
    ],
)
def test_impossible_requests_are_refused_with_status_2_and_a_sentence(
    number: str,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    trail = AuditEntry.objects.count()
    typed = [number if word == "NUMBER" else word for word in arguments]
    code, error = refusal(capsys, "backfill", *typed)
    assert (code, AuditEntry.objects.count()) == (2, trail)
    assert sentence in error


def test_a_viewer_controls_only_what_was_granted(
    number: str, vera: User, capsys: pytest.CaptureFixture[str]
) -> None:
    as_vera: Any = ("--as", "vera")
    for verb in ("pause", "resume", "cancel", "delete", "retry", "clone"):
        code, error = refusal(capsys, "backfill", verb, number, *as_vera)
        assert (code, "vera may not" in error) == (2, True)
    Grant.objects.create(person=vera, asset="raw_flights")
    assert output_of("backfill", "pause", number, *as_vera) == f"Backfill {number} is paused.\n"


def test_canceled_partitions_are_not_shown_as_materialized(number: str) -> None:
    advance()
    assert "queued or running" in output_of("backfill", "show", number)
    output_of("backfill", "cancel", number)
    assert "0 of 6 materialized, 6 canceled" in output_of("backfill", "show", number)
    assert "0 of 6 materialized, 6 canceled" in output_of("backfill", "list")


@pytest.mark.parametrize("verb", ["preview", "create"])
def test_two_names_are_refused_with_the_option_that_takes_them(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("raw_flights", "carriers"), ("raw_flights", "carriers", "2013-01-01")):
        code, error = refusal(capsys, "backfill", verb, *words)
        assert code == 2
        assert "carriers is an asset: name several by --assets raw_flights,carriers." in error
