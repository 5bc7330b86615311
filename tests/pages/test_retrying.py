"""Pages on which ended runs are tried once more, and the page of the workers."""

import re
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.policy import Role
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run, RunGroup, RunState
from backfills_app.services import cancel_backfill, request_from_text
from backfills_app.services.advance.advancing import advance
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, asset, person
from tests.gateways import record_attempt, record_gateway
from tests.pages.markup import compact, page_at, polled_address
from tests.pages.run_records import recorded_run, renewed_code

pytestmark = pytest.mark.django_db


@pytest.fixture
def flights() -> Asset:
    return asset("raw_flights", DAILY_2013)


def canceled(flights: Asset, selection: str = "2013-01-01") -> list[Run]:
    """Return the runs of one request, which a person has canceled."""
    ada = person(f"ada{Run.objects.count()}", is_superuser=True)
    group = materialize(MaterializeRequest(asset=flights, selection=selection), user=ada)
    return [cancel_run(run, user=ada) for run in group.runs.order_by("id")]


def follow(browser: Client, address: str, data: dict[str, Any] | None = None) -> str:
    return browser.post(address, data or {}, follow=True).content.decode()


@pytest.mark.parametrize(
    ("state", "paused", "is_told"),
    [("queued", False, True), ("running", False, True), ("canceling", False, False),
     ("queued", True, False), ("running", True, True)],
)  # fmt: skip
def test_a_further_attempt_is_told_only_if_one_follows(
    state: str, paused: bool, is_told: bool, browser: Client, flights: Asset
) -> None:
    run = recorded_run(flights, RunState(state), error="no rows", error_kind="code")
    RunGroup.objects.update(paused=paused)
    told = "Slicewise retries the run automatically" in page_at(browser, f"/runs/{run.pk}/")
    assert told is is_told


def test_an_open_page_follows_a_pause_of_the_backfill(browser: Client, flights: Asset) -> None:
    run = recorded_run(flights, RunState.QUEUED, error="no rows", error_kind="code")
    polled = polled_address(page_at(browser, f"/runs/{run.pk}/"))
    RunGroup.objects.update(paused=True)
    answer = browser.get(polled)
    assert answer.status_code == 200
    assert "Slicewise retries the run automatically" not in answer.content.decode()


def test_a_run_is_retried_from_a_page_that_asks_first(browser: Client, flights: Asset) -> None:
    run = canceled(flights)[0]
    address = f"/runs/{run.pk}/retry/"
    assert f'href="{address}"' in page_at(browser, f"/runs/{run.pk}/")
    question = page_at(browser, address)
    assert "Queues a new attempt for" in question
    assert "Code unchanged." in question
    run.refresh_from_db()
    assert run.state == RunState.CANCELED
    text = follow(browser, address)
    assert f"Retrying run {run.pk}." in text
    assert "was: canceled" in compact(text)
    assert f'href="{address}"' not in text
    assert "it has not ended yet" in follow(browser, address)


def test_the_code_is_chosen_where_it_has_changed(browser: Client, flights: Asset) -> None:
    run = canceled(flights)[0]
    assert "Code unchanged." in page_at(browser, f"/runs/retry/?run={run.pk}")
    version = renewed_code(flights)
    assert "ffffffffffff" in page_at(browser, f"/runs/{run.pk}/retry/")
    assert "ffffffffffff" in page_at(browser, f"/runs/retry/?run={run.pk}")
    follow(browser, f"/runs/{run.pk}/retry/", {"code": "newest"})
    run.refresh_from_db()
    assert run.producer_version == version
    assert "none of same, newest" in follow(browser, f"/runs/{run.pk}/rerun/", {"code": "older"})


def test_a_run_of_a_backfill_is_retried_in_it_or_run_again_beside_it(
    browser: Client, flights: Asset
) -> None:
    ada = person("eve", is_superuser=True)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-02")
    backfill = create_backfill(request, user=ada)
    advance()
    cancel_backfill(backfill, user=ada)
    run, second_run = backfill.group.runs.order_by("id")
    text = page_at(browser, f"/runs/{run.pk}/")
    assert f'href="/runs/{run.pk}/retry/"' in text
    assert f'href="/runs/{run.pk}/rerun/"' in text
    browser.post(f"/runs/{second_run.pk}/retry/")
    backfill.refresh_from_db()
    assert backfill.state == "running"
    assert "new run for partition" in page_at(browser, f"/runs/{run.pk}/rerun/")
    answer = browser.post(f"/runs/{run.pk}/rerun/")
    new = Run.objects.order_by("-id").first()
    assert new
    assert answer["Location"] == f"/runs/{new.pk}/"
    assert new.pk != run.pk


def test_runs_that_can_be_retried_are_selected_in_the_list(browser: Client, flights: Asset) -> None:
    first, second = canceled(flights, "2013-01-01..2013-01-02")
    going_on = materialize(
        MaterializeRequest(asset=flights, selection="2013-02-01"),
        user=person("eve", is_superuser=True),
    ).runs.get()
    text = compact(page_at(browser, "/runs/"))
    assert set(re.findall(r'name="run" value="(\d+)"', text)) == {str(first.pk), str(second.pk)}
    assert "Retry all" not in text
    listed = compact(page_at(browser, "/runs/?state=canceled"))
    assert "Retry all 2 canceled on this page" in listed
    assert listed.index("Retry selected…") < listed.index("<table")
    question = page_at(browser, f"/runs/retry/?run={first.pk}&run={going_on.pk}")
    assert "Retry 2 runs?" in question
    text = follow(browser, "/runs/retry/", {"run": [first.pk, going_on.pk]})
    assert "Retrying 1 run." in text
    assert f"Run {going_on.pk} is queued: it has not ended yet." in text


def test_the_failed_runs_of_a_request_are_retried_from_its_list(
    browser: Client, flights: Asset
) -> None:
    runs = canceled(flights, "2013-01-01..2013-01-03")
    for run in runs[:2]:
        Run.objects.filter(pk=run.pk).update(state=RunState.QUEUED, ended_at=None)
        Run.objects.filter(pk=run.pk).update(state=RunState.FAILED, ended_at=run.ended_at)
    group = runs[0].group_id
    list_address, address = f"/runs/?group={group}", f"/runs/retry/?group={group}"
    link = f"{address}&back={quote(list_address)}"
    assert f'href="{escape(link)}"' in page_at(browser, list_address)
    question = page_at(browser, link)
    assert "Retry 2 runs?" in question
    assert f'href="{list_address}">Back</a>' in question
    assert "Retrying 2 runs." in follow(browser, address)
    assert "No run selected" in follow(browser, address)


@pytest.mark.parametrize("query", ["", "?run=x", "?group=999999", "?group=x", "?run="])
def test_nothing_selected_leads_back_to_the_list(browser: Client, query: str) -> None:
    answer = browser.get(f"/runs/retry/{query}", follow=True)
    assert answer.redirect_chain == [("/runs/", 302)]
    assert "No run selected" in answer.content.decode()


@pytest.mark.parametrize(
    "back",
    [
        *("//evil.example", "https://evil.example/", "javascript:x", "", "evil.example"),
        *("/\t//evil.example", "/\n//evil.example", "/\t\\/evil.example", "/\\evil.example"),
    ],
)
def test_a_person_is_led_back_to_pages_of_this_site_alone(
    browser: Client, flights: Asset, back: str
) -> None:
    (run,) = canceled(flights)
    question = page_at(browser, f"/runs/retry/?{urlencode({'run': run.pk, 'back': back})}")
    assert 'href="/runs/">Back</a>' in question


def test_a_refused_retry_leads_back_to_the_list_of_the_person(
    browser: Client, flights: Asset
) -> None:
    (run,) = canceled(flights)
    address = f"/runs/retry/?{urlencode({'back': '/runs/?state=canceled'})}"
    answer = browser.post(address, {"run": [run.pk], "code": "nonsense"})
    assert (answer.status_code, answer["Location"]) == (302, "/runs/?state=canceled")


def test_the_question_about_a_cancellation_names_a_process_of_running_runs_alone(
    browser: Client, flights: Asset
) -> None:
    run = recorded_run(flights, RunState.QUEUED)
    assert "process" not in page_at(browser, f"/runs/{run.pk}/cancel/").split("<main")[1]
    running = recorded_run(flights, RunState.RUNNING)
    question = compact(page_at(browser, f"/runs/{running.pk}/cancel/"))
    assert "The process is stopped, and its unpublished output is discarded." in question


def test_a_viewer_is_offered_nothing_and_refused(flights: Asset) -> None:
    run = canceled(flights)[0]
    client = Client()
    client.force_login(
        person("ulf", Role.VIEWER), backend="django.contrib.auth.backends.ModelBackend"
    )
    assert "retry" not in page_at(client, f"/runs/{run.pk}/")
    assert "retry" not in page_at(client, "/runs/")
    for address in (f"/runs/{run.pk}/retry/", f"/runs/{run.pk}/rerun/", "/runs/retry/"):
        assert client.post(address, {"run": [run.pk]}).status_code == 403
    run.refresh_from_db()
    assert run.state == RunState.CANCELED


def test_the_choice_for_several_runs_names_the_functions_with_newer_code(
    browser: Client, flights: Asset
) -> None:
    named = f"run={canceled(flights)[0].pk}"
    for name in ("delays", "routes", "untouched"):
        other = asset(name, DAILY_2013)
        named += f"&run={canceled(other)[0].pk}"
        if name == "routes":
            renewed_code(other)
    address = f"/runs/retry/?{named}"
    page = compact(page_at(browser, address))
    assert "of each run" in page
    assert '(newer code of routes:<span class="key">ffffffffffff</span>' in page
    renewed_code(flights)
    assert "(newer code of 2 functions: raw_flights, routes)" in compact(page_at(browser, address))


def test_lists_and_pages_cost_the_same_however_many_can_be_retried(
    browser: Client, flights: Asset
) -> None:
    def statements(address: str) -> int:
        with CaptureQueriesContext(connection) as statements:
            page_at(browser, address)
        return len(statements)

    few = canceled(flights)
    counts = [statements("/runs/"), statements(f"/runs/retry/?run={few[0].pk}")]
    many = canceled(flights, "2013-02")
    named = "&".join(f"run={run.pk}" for run in many)
    assert [statements("/runs/"), statements(f"/runs/retry/?{named}")] == counts


def test_the_workers_have_a_page(browser: Client, flights: Asset) -> None:
    assert "No workers" in page_at(browser, "/gateways/")
    run = canceled(flights)[0]
    record_attempt(record_gateway("fine"), run)
    record_gateway("going", draining=True)
    record_gateway("gone", silent_seconds=60)
    record_gateway("ended", silent_seconds=60, draining=True)
    text = page_at(browser, "/gateways/")
    assert f'<a href="/runs/{run.pk}/">{run.pk}</a> of raw_flights' in " ".join(text.split())
    for word in ("Online", "Draining", "Offline", "Stopped", "takes no new runs"):
        assert word in text
    assert "<b>2</b> of 3 slots free" in text
    assert "No workers on this queue" in text
    assert 'href="/gateways/" aria-current="page"' in text
    record_gateway("old", silent_seconds=90_000)
    shown = re.findall(r'<span class="key nowrap">(\w+)</span>', page_at(browser, "/gateways/"))
    assert shown == ["gone", "going", "fine", "ended", "old"]
    assert "check its process and log on the host" in text


def test_the_page_of_workers_answers_nothing_until_something_has_changed(
    browser: Client, flights: Asset
) -> None:
    record_gateway("fine")
    again = polled_address(page_at(browser, "/gateways/"))
    Gateway.objects.update(process_id=8)
    assert browser.get(again).status_code == 204
    Gateway.objects.update(spark_away_since=timezone.now())
    answer = browser.get(again)
    assert "Spark does not answer" in answer.content.decode()
    Gateway.objects.update(draining=True, spark_away_since=None)
    answer = browser.get(again)
    assert answer.status_code == 200
    assert "Spark does not answer" not in answer.content.decode()
    assert "<html" not in answer.content.decode()
