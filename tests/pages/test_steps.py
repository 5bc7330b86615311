"""Steps of a run on its page, in the API and by the command line."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import AttemptStep, Run, RunAttempt, RunLog
from tests.cli.commands import output_of
from tests.clients import api_client_of
from tests.factories import DAILY_2013, asset, person
from tests.pages.markup import compact, page_at

pytestmark = pytest.mark.django_db
SECRET = "the login postgres://bob:secret@host/db is refused"


@pytest.fixture
def ada(db: None) -> User:
    """Create the person that a command acts as."""
    return person("ada", is_superuser=True)


@pytest.fixture
def run(vera: User) -> Run:
    flights = asset("raw_flights", DAILY_2013, options={"setup": "cluster", "teardown": "close"})
    made = materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=vera)
    return made.runs.get()


def attempted(run: Run, number: int, *states: tuple[str, str]) -> RunAttempt:
    """Create an attempt whose steps have these states and errors."""
    now = timezone.now()
    attempt = RunAttempt.objects.create(
        run=run, number=number, token=uuid4(), started_at=now, ended_at=now, outcome="failed"
    )
    kinds = (("setup", "cluster"), ("function", "raw_flights"), ("teardown", "close"))
    for position, ((kind, name), (state, error)) in enumerate(zip(kinds, states, strict=True)):
        has_begun, has_ended = state != "not_run", state not in ("not_run", "running")
        AttemptStep.objects.create(
            attempt=attempt, position=position, kind=kind, name=name, state=state, error=error,
            started_at=now - timedelta(seconds=8) if has_begun else None,
            ended_at=now if has_ended else None,
        )  # fmt: skip
        RunLog.objects.create(
            attempt=attempt, sequence=position + 1, step=kind, text=f"<{kind} {number}>\n"
        )
    RunLog.objects.create(attempt=attempt, sequence=9, text="between\n")
    return attempt


def test_each_step_is_shown_with_state_time_error_and_log(browser: Client, run: Run) -> None:
    attempted(run, 1, ("succeeded", ""), ("failed", SECRET), ("not_run", "The worker was lost."))
    page = page_at(browser, f"/runs/{run.pk}/")
    for words in ("Set-up", "Function", "Tear-down", "Not run", "The worker was lost.", "8.0\xa0s"):
        assert words in page
    assert "secret" not in page
    places = [page.index(f">{name}</div>") for name in ("cluster", "raw_flights", "close")]
    assert places == sorted(places)
    assert "log/file/?attempt=1&amp;step=function" in page
    assert page.count("&amp;step=") == 2, "what was not run has no log"
    assert "Download the log: function, attempt 1" in page


def test_the_log_of_a_step_is_that_of_its_attempt(browser: Client, run: Run) -> None:
    for number in (1, 2):
        attempted(run, number, ("succeeded", ""), ("failed", "no"), ("succeeded", ""))
    page = page_at(browser, f"/runs/{run.pk}/")
    (address,) = {
        address.replace("&amp;", "&")
        for address in re.findall(r'href="([^"]*)"', page)
        if "attempt=2&amp;step=teardown" in address
    }
    assert b"".join(browser.get(address)) == b"<teardown 2>\n"
    whole = b"".join(browser.get(address.partition("?")[0])).decode()
    assert "<setup 1>\n<function 1>\n" in whole
    for query in ("attempt=x&step=setup", "attempt=9&step=setup", "attempt=1&step=nothing"):
        assert b"".join(browser.get(f"{address.partition('?')[0]}?{query}")) == b""


def test_a_page_without_steps_says_nothing_of_them(browser: Client, vera: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection="2013-01-01")
    run = materialize(request, user=vera).runs.get()
    assert "Set-up" not in page_at(browser, f"/runs/{run.pk}/")


def test_an_open_page_is_renewed_when_a_step_ends(browser: Client, run: Run) -> None:
    attempted(run, 1, ("succeeded", ""), ("running", ""), ("not_run", ""))
    page = page_at(browser, f"/runs/{run.pk}/")
    version = page.partition("more/?version=")[2].partition('"')[0]
    again = f"/runs/{run.pk}/more/?version={version}"
    assert browser.get(again).status_code == 204
    AttemptStep.objects.filter(state="running").update(state="failed", ended_at=timezone.now())
    assert browser.get(again).status_code == 200


def test_the_api_has_the_steps_of_each_attempt(vera: User, run: Run) -> None:
    attempted(run, 1, ("succeeded", ""), ("failed", SECRET), ("not_run", "gone"))
    api_client = api_client_of(vera)
    with CaptureQueriesContext(connection) as first:
        (attempt,) = api_client.get(f"/api/v1/runs/{run.pk}/").json()["attempts"]
    assert [(step["step"], step["name"], step["state"]) for step in attempt["steps"]] == [
        ("setup", "cluster", "succeeded"),
        ("function", "raw_flights", "failed"),
        ("teardown", "close", "not_run"),
    ]
    assert attempt["steps"][0]["started_at"] < attempt["steps"][0]["ended_at"]
    assert "secret" not in attempt["steps"][1]["error"]
    assert attempt["steps"][2]["started_at"] is None
    log = api_client.get(f"/api/v1/runs/{run.pk}/log/").json()["entries"]
    assert [entry["step"] for entry in log] == ["setup", "function", "teardown", ""]
    attempted(run, 2, ("succeeded", ""), ("failed", "no"), ("succeeded", ""))
    with CaptureQueriesContext(connection) as second:
        api_client.get(f"/api/v1/runs/{run.pk}/")
    assert len(second) == len(first)


def test_the_command_prints_the_steps(ada: User, run: Run) -> None:
    attempted(run, 1, ("succeeded", ""), ("failed", SECRET), ("not_run", "gone"))
    text = output_of("runs", "show", str(run.pk))
    assert "setup cluster: succeeded, 20" in text
    assert "function raw_flights: failed" in text
    assert "teardown close: not_run (gone)" in text
    assert "secret" not in text


def test_steps_and_attempts_have_the_same_order(browser: Client, run: Run) -> None:
    for number in (1, 2, 3):
        attempted(run, number, ("succeeded", ""), ("failed", "no"), ("succeeded", ""))
    page = compact(page_at(browser, f"/runs/{run.pk}/"))
    of_steps, of_attempts = page.split(">Steps</h2>")[1].split(">Attempts</h2>")
    steps = [int(number) for number in re.findall(r'<td class="number">(\d)</td>', of_steps)]
    attempts = [
        int(number) for number in re.findall(r'<tr><td data-label="Attempt">(\d)</td>', of_attempts)
    ]
    assert (steps, attempts) == ([3, 3, 3, 2, 2, 2, 1, 1, 1], [3, 2, 1])
