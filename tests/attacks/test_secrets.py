"""Secrets that user code puts into errors and logs are shown at no door."""

import json
import logging
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts_app import audit
from accounts_app.models import AuditEntry, Grant, User
from accounts_app.policy import Role
from assets_app.execution.attempt.logs import LogKeeper
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    AssetPartition,
    Bundle,
    BundleVersion,
    Materialization,
    Run,
    RunAttempt,
    RunLog,
    RunPartition,
    RunState,
    Schedule,
    ValidationResult,
    WriteReport,
)
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services import request_from_text
from slicewise_server.logging import EventFormatter
from slicewise_server.stack import definitions
from tests import factories
from tests.clients import browser_of
from tests.created_backfills import create_backfill
from tests.scheduling.scheduled_assets import at, cron, scheduled

SECRET = "hunter2"
LEAK = f"ValueError: postgres://me:{SECRET}@db/x password={SECRET} {{'token': '{SECRET}'}}"

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return factories.person("ada", Role.ADMIN, is_superuser=True, is_staff=True)


@pytest.fixture
def browser(ada: User) -> Client:
    return browser_of(ada)


@pytest.fixture
def run(ada: User, browser: Client) -> Run:
    """Create a failed run of a backfill; every text that user code can write holds the secret."""
    asset = scheduled("raw_flights", cron("@daily"), factories.DAILY_2013, since=at(2014, 1, 1))
    form = {"asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-01"}
    browser.post("/backfills/new/", form | {"max_active_runs": "1", "existing": "all"})
    materialize(MaterializeRequest(asset=asset, selection="2013-01-02"), user=ada)
    run = Run.objects.latest("pk")
    Run.objects.update(
        state=RunState.FAILED, error=LEAK, error_kind="code", ended_at=timezone.now()
    )
    RunPartition.objects.update(error=LEAK, state=RunPartition.State.FAILED)
    params = {"db_password": SECRET, "nested": {"token": SECRET}}
    for model in (Run, Backfill, BackfillAsset):
        model.objects.update(params=params)
    attempt = RunAttempt.objects.create(
        run=run, number=1, token=uuid4(), started_at=timezone.now(), ended_at=timezone.now(),
        outcome="failed",
        error=LEAK, traceback=f"Traceback\n  connect('{LEAK}')\n{LEAK}",
    )  # fmt: skip
    RunLog.objects.create(attempt=attempt, sequence=1, text=f"{LEAK}\n")
    ValidationResult.objects.create(
        attempt=attempt, position=0, asset=asset, when="outlet", name="rows", severity="error",
        passed=False, evaluated=True, message=LEAK, description=LEAK, observed={"token": SECRET},
    )  # fmt: skip
    AssetPartition.objects.update(state="failed", last_run=run, held_by=None)
    Bundle.objects.update(error=LEAK, current_version=BundleVersion.objects.get())
    broken = [{"path": "flights.py", "line": 1, "message": LEAK, "traceback": LEAK}]
    BundleVersion.objects.update(import_errors=broken)
    Schedule.objects.update(
        error=LEAK, failures=2, failing_since=timezone.now(), retry_at=timezone.now()
    )
    Backfill.objects.update(error=LEAK, stalled_error=LEAK, stalled_since=timezone.now())
    named = {"token": [SECRET], "changed": {"db_password": {"from": SECRET, "to": ""}}}
    audit.record(ada, "retry", "run", str(run.pk), {"reason": LEAK, "password": SECRET, **named})
    report = WriteReport.objects.create(
        asset=asset, partition_count=1, reported_by=ada, reported_by_name="ada",
        created_at=timezone.now(), metadata={"api_key": SECRET, "inner": {"token": SECRET}},
    )  # fmt: skip
    written = AssetPartition.objects.get(key="2013-01-02")
    Materialization.objects.create(
        partition=written, report=report, version=1, created_at=timezone.now()
    )
    return run


def _addresses(run: Run) -> list[str]:
    backfill = Backfill.objects.get().pk
    asset = f"/assets/{run.asset.name}/"
    return [
        "/", "/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/status/", f"/runs/{run.pk}/log/",
        f"/runs/{run.pk}/partitions/", f"/runs/{run.pk}/log/file/", "/bundles/", asset,
        *(f"{asset}?tab={tab}" for tab in ("runs", "schedule", "validations", "definition")),
        f"{asset}partitions/2013-01-02/", "/backfills/", f"/backfills/{backfill}/",
        "/api/v1/runs/", f"/api/v1/runs/{run.pk}/", f"/api/v1/runs/{run.pk}/log/",
        f"/api{asset}".replace("/api/", "/api/v1/"), f"/api/v1/backfills/{backfill}/",
        "/api/v1/backfills/", f"/api/v1/backfills/{backfill}/outcome/",
        "/admin/assets_app/run/", f"/admin/assets_app/run/{run.pk}/change/",
        "/admin/assets_app/bundle/", f"/admin/assets_app/bundle/{run.asset.bundle_id}/change/",
        f"/admin/backfills_app/backfill/{backfill}/change/", "/admin/accounts_app/auditentry/",
        f"/admin/accounts_app/auditentry/{AuditEntry.objects.latest('pk').pk}/change/",
    ]  # fmt: skip


def test_no_page_no_operation_and_no_admin_shows_a_secret(browser: Client, run: Run) -> None:
    masked = 0
    for address in _addresses(run):
        answer = browser.get(address)
        assert answer.status_code in (200, 286), (address, answer.status_code)
        body = answer.getvalue().decode()
        assert SECRET not in body, (address, body[max(0, body.find(SECRET) - 200) :][:300])
        masked += "postgres://me:***@db" in body
    assert masked >= 18


FORMS = (
    "/backfills/new/?clone={clone}",
    "/backfills/new/?asset=orders",
    "/backfills/new/?asset=orders&fragment=dependent",
    "/backfills/new/?asset=orders&shown_for=orders&start=2013-01-01&params={{}}",
    "/assets/orders/materialize/",
)


def _clear_forms(user: User, clone: Backfill) -> list[str]:
    """Return the addresses of forms in which the user reads a secret param."""
    browser, clear = browser_of(user), list[str]()
    for address in FORMS:
        headers = {"hx-request": "true"} if "fragment" in address or "shown_for" in address else {}
        answer = browser.get(address.format(clone=clone.pk), headers=headers)
        assert answer.status_code == 200, address
        if SECRET in answer.content.decode():
            clear.append(address)
    return clear


@pytest.fixture
def clone(ada: User) -> Backfill:
    """Create a backfill with a secret param, of assets that declare other secrets."""
    for name in ("orders", "clicks"):
        params = {"db_password": f"declared {SECRET}", "uri": f"postgres://me:{SECRET}@db/x"}
        factories.asset(name, factories.DAILY_2013, params=params)
    own_params = {"db_password": f"given {SECRET}"}
    request = request_from_text(
        assets=["orders", "clicks"], start="2013-01-01", end="2013-01-01", params=own_params
    )
    return create_backfill(request, user=ada)


def test_forms_show_secret_params_to_those_alone_who_may_submit(clone: Backfill) -> None:
    assert _clear_forms(factories.person("viewer"), clone) == []
    granted = factories.person("granted")
    Grant.objects.create(person=granted, permission="backfill", asset="clicks")
    assert _clear_forms(granted, clone) == []
    Grant.objects.create(person=granted, permission="backfill", asset="orders")
    assert _clear_forms(granted, clone) == list(FORMS[:3])
    operator = factories.person("operator", Role.OPERATOR)
    assert _clear_forms(operator, clone) == [*FORMS[:3], FORMS[4]]


def test_the_mask_of_a_param_cannot_be_submitted(ada: User, clone: Backfill) -> None:
    browser = browser_of(ada)
    backfill = {
        "asset": "orders", "shown_for": "orders", "start": "2013-01-01", "end": "2013-01-01",
        "max_active_runs": "1", "existing": "all", "param-uri": "postgres://me:***@db/x",
        "param-db_password": f"declared {SECRET}",
    }  # fmt: skip
    answer = browser.post("/backfills/new/", backfill)
    assert "uri has *** in place of a secret" in answer.content.decode()
    run = {"selection": "2013-01-01", "params": '{"db_password": "***"}'}
    answer = browser.post("/assets/orders/materialize/", run)
    assert "db_password has *** in place of a secret" in answer.content.decode()
    assert (Run.objects.count(), Backfill.objects.count()) == (0, 1)


@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_prints_a_secret(run: Run, as_json: bool) -> None:
    backfill = Backfill.objects.get().pk
    for words in (
        ("runs", "list"),
        ("runs", "show", str(run.pk)),
        ("runs", "logs", str(run.pk)),
        ("backfill", "show", str(backfill)),
        ("backfill", "list"),
        ("assets", "show", "raw_flights"),
        ("assets", "schedule", "raw_flights"),
    ):
        out, err = StringIO(), StringIO()
        call_command(*words, *(["--json"] if as_json else []), stdout=out, stderr=err)
        assert SECRET not in out.getvalue() + err.getvalue(), words
        if as_json:
            json.loads(out.getvalue())


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_check_of_files_prints_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    (tmp_path / "broken.py").write_text(f"raise ValueError('at x://me:' + '{SECRET}@db/x')")
    assert definitions.main(["check", str(tmp_path), *options]) == 1
    printed = capsys.readouterr()
    assert "x://me:***@db/x" in printed.out + printed.err
    messages = [error["message"] for error in json.loads(printed.out)["errors"]] if options else []
    assert SECRET not in (printed.err + "".join(messages))


@pytest.mark.parametrize("as_json", [False, True])
def test_no_line_of_our_own_log_holds_a_secret(as_json: bool) -> None:
    try:
        raise ValueError(LEAK)
    except ValueError as error:
        record = logging.getLogger("assets_app.x").makeRecord(
            "assets_app.x", logging.ERROR, __file__, 1, "not done: %s", (LEAK,),
            (type(error), error, error.__traceback__), extra={"error": LEAK},
        )  # fmt: skip
    line = EventFormatter(as_json).format(record)
    assert SECRET not in line
    assert line.count("postgres://me:***@db") >= 3
    if as_json:
        json.loads(line)


def test_a_stored_log_is_cut_between_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    RunLog.objects.all().delete()
    monkeypatch.setattr("assets_app.execution.attempt.logs._FLUSH_CHARACTERS", 10)
    keeper = LogKeeper(run.attempts.get())
    keeper.add("the first line\npassw")
    keeper.add(f"ord={SECRET} on the second\nthe thi")
    keeper.flush()
    texts = RunLog.objects.order_by("sequence").values_list("text", flat=True)
    assert list(texts) == ["the first line\n", f"password={SECRET} on the second\n", "the thi"]


def test_a_line_without_end_is_kept_in_the_next_block(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunLog.objects.all().delete()
    monkeypatch.setattr("assets_app.execution.attempt.logs._FLUSH_SECONDS", -1.0)
    keeper = LogKeeper(run.attempts.get())
    keeper.add("one\n50 %")
    keeper.flush_if_due()
    texts = RunLog.objects.order_by("sequence").values_list("text", flat=True)
    assert list(texts) == ["one\n", "50 %"]


def test_recorded_texts_stay_unchanged(run: Run) -> None:
    run.refresh_from_db()
    assert run.error == LEAK
