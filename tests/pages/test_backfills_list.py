"""The list of backfills: filters by its address, and actions on several backfills."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from backfills_app.models import Backfill
from backfills_app.services import pause_backfill, request_from_text
from tests.clients import browser_of
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, asset, person
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.markup import page_at, polled_address

pytestmark = pytest.mark.django_db


@pytest.fixture
def january(vera: User) -> Backfill:
    """Create a backfill that is on its way."""
    asset("raw_flights", DAILY_2013)
    return written_backfill(vera, description="January again")


@pytest.fixture
def weather(vera: User) -> Backfill:
    """Create a backfill of another asset, by another person, that has failed in part."""
    asset("weather", DAILY_2013)
    backfill = written_backfill(
        person("otto", Role.OPERATOR), "weather", "2013-02-01", "2013-02-03"
    )
    runs_of(backfill, "succeeded", 2)
    runs_of(backfill, "failed", 1, error="no rows")
    return backfill


def listed(browser: Client, query: str = "") -> str:
    """Return the list as shown for a query."""
    return page_at(browser, f"/backfills/?{query}")


def rows_of(text: str) -> list[int]:
    """Return the numbers of the backfills, in the order of the rows."""
    return [int(row.split('"')[0]) for row in text.split('<tr id="backfill-')[1:]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "wj"),
        ("sort=oldest", "jw"),
        ("sort=asset", "jw"),
        ("asset=weath", "w"),
        ("person=vera", "j"),
        ("q=January", "j"),
        ("q=backfill_weather", "w"),
        ("state=partially_failed", "w"),
        ("state=any_failed", "w"),
        ("state=unfinished", "j"),
        ("state=deleted", ""),
        ("state=unfinished&asset=weather", ""),
    ],
)
def test_it_is_searched_filtered_and_sorted_by_its_address(
    browser: Client, january: Backfill, weather: Backfill, query: str, expected: str
) -> None:
    named = {"j": january.pk, "w": weather.pk}
    text = listed(browser, query)
    assert rows_of(text) == [named[name] for name in expected]
    assert ("No matching backfills" in text) == (not expected)


def test_each_backfill_that_can_be_changed_leads_to_the_form(
    browser: Client, january: Backfill, weather: Backfill
) -> None:
    text = listed(browser)
    assert f'href="/backfills/{january.pk}/change/"' in text
    # A backfill that has ended has no runs to change.
    assert f'href="/backfills/{weather.pk}/change/"' not in text
    page = page_at(browser, f"/backfills/{january.pk}/")
    assert 'No runs yet. Runs start when <a href="/gateways/">a worker</a> has a free slot.' in page


def test_the_overview_without_active_backfills_leads_to_the_form(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    assert '<a href="/backfills/new/">start a backfill</a>' in page_at(browser, "/")


def test_it_says_who_asked_and_how_far_it_is(browser: Client, weather: Backfill) -> None:
    text = listed(browser)
    for fragment in ("otto", "2 of 3 materialized", "1 failed", "Partially failed", ">Duration "):
        assert fragment in text


def test_it_takes_as_many_statements_for_one_as_for_many(
    browser: Client, vera: User, january: Backfill
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as statements:
            listed(browser)
        return len(statements)

    few = statements()
    for _ in range(5):
        runs_of(written_backfill(vera), "running", 3)
    assert statements() == few
    assert few <= 10


def test_it_answers_nothing_until_something_has_changed(
    browser: Client, january: Backfill, weather: Backfill
) -> None:
    again = polled_address(listed(browser, "state=unfinished&sort=oldest"))
    assert again.startswith("/backfills/listed/?state=unfinished&sort=oldest&version=")
    assert browser.get(again).status_code == 204
    runs_of(january, "running", 2)
    answer = browser.get(again)
    assert answer.status_code == 200
    text = answer.content.decode()
    assert rows_of(text) == [january.pk]
    assert "<html" not in text


def test_several_are_paused_and_resumed_at_once(
    browser: Client, vera: User, january: Backfill, weather: Backfill
) -> None:
    second_backfill = written_backfill(vera)
    ids = {"id": [january.pk, second_backfill.pk, weather.pk], "back": "state=unfinished"}
    answer = browser.post("/backfills/selected/pause/", ids)
    assert answer["Location"] == "/backfills/?state=unfinished"
    text = browser.get(answer["Location"]).content.decode()
    assert "2 backfills: paused" in text
    assert "partially failed already" in text
    assert set(Backfill.objects.filter(group__paused=True)) == {january, second_backfill}
    browser.post("/backfills/selected/resume/", ids)
    assert not Backfill.objects.filter(group__paused=True).exists()


@pytest.mark.parametrize(
    ("action", "state"),
    # A retry of several takes what failed: what a person canceled stays canceled.
    [("cancel", "canceled"), ("delete", "canceled"), ("retry", "canceled")],
)
def test_irreversible_actions_on_several_backfills_are_confirmed_once(
    browser: Client, vera: User, january: Backfill, action: str, state: str
) -> None:
    second_backfill = written_backfill(vera)
    ids: dict[str, Any] = {"id": [january.pk, second_backfill.pk], "back": ""}
    if action != "cancel":
        browser.post("/backfills/selected/cancel/", ids | {"sure": "1"})
    before = set(Backfill.objects.values_list("pk", "state", "deleted"))
    text = browser.post(f"/backfills/selected/{action}/", ids).content.decode()
    text = text.replace("<wbr>", "")  # a name may break after its underscores
    assert january.name in text
    assert second_backfill.name in text
    assert set(Backfill.objects.values_list("pk", "state", "deleted")) == before
    answer = browser.post(f"/backfills/selected/{action}/", ids | {"sure": "1"})
    assert answer["Location"] == "/backfills/"
    rows = Backfill.objects.values_list("state", "deleted")
    assert set(rows) == {(state, action == "delete")}


def test_nothing_selected_is_said_in_words(browser: Client, january: Backfill) -> None:
    answer = browser.post("/backfills/selected/pause/", {"id": ["x"]})
    assert "No backfill selected" in browser.get(answer["Location"]).content.decode()


def test_an_address_to_go_back_to_is_one_of_the_list(browser: Client, january: Backfill) -> None:
    sent = {"id": [january.pk], "back": "https://elsewhere.example/"}
    answer = browser.post("/backfills/selected/pause/", sent)
    assert answer["Location"].startswith("/backfills/?")


def test_nothing_is_done_by_looking(browser: Client, january: Backfill) -> None:
    assert browser.get("/backfills/selected/cancel/").status_code == 405
    for action in ("pause", "resume", "cancel", "retry", "delete"):
        assert browser.get(f"/backfills/{january.pk}/{action}/").status_code in (200, 302)
    january.refresh_from_db()
    assert (january.state, january.group.paused, january.deleted) == ("scheduled", False, False)


def test_writes_need_a_token_of_the_page(vera: User, january: Backfill) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    assert 'name="csrfmiddlewaretoken"' in listed(client)
    for address in (
        "/backfills/selected/pause/", f"/backfills/{january.pk}/pause/", "/backfills/new/",
        f"/backfills/{january.pk}/change/",
    ):  # fmt: skip
        assert client.post(address, {"id": [january.pk]}).status_code == 403


@pytest.fixture
def ulf() -> Client:
    """Return the browser of a person who may only look."""
    return browser_of(person("ulf"))


def test_whoever_may_only_look_is_offered_nothing_and_refused(
    ulf: Client, january: Backfill
) -> None:
    for address in ("/backfills/", f"/backfills/{january.pk}/"):
        text = ulf.get(address).content.decode()
        for word in ("formaction", 'id="pause', "Cancel…", "Clone…", "New backfill", 'name="id"'):
            assert word not in text
    for action in ("pause", "cancel", "retry", "delete"):
        for address in (f"/backfills/{january.pk}/{action}/", f"/backfills/selected/{action}/"):
            sent = {"id": [january.pk], "sure": "1"}
            assert ulf.post(address, sent).status_code == 403
    assert ulf.post(f"/backfills/{january.pk}/change/", {
        "max_active_runs": "1", "priority": "0", "order": "oldest"}).status_code == 403  # fmt: skip
    january.refresh_from_db()
    assert (january.state, january.group.paused) == ("scheduled", False)


def test_a_deleted_one_is_found_by_its_state_and_kept_as_a_record(
    browser: Client, weather: Backfill
) -> None:
    answer = browser.post(f"/backfills/{weather.pk}/delete/")
    assert answer["Location"] == "/backfills/"
    assert rows_of(listed(browser)) == []
    assert rows_of(listed(browser, "state=deleted")) == [weather.pk]
    text = browser.get(f"/backfills/{weather.pk}/").content.decode()
    assert "Deleted <time" in text
    assert "Clone…" in text
    assert "Retry" not in text


def test_a_paused_one_says_that_runs_are_still_at_work(
    browser: Client, vera: User, january: Backfill
) -> None:
    runs_of(january, "succeeded", 10, seconds=1.0)
    runs_of(january, "running", 2)
    addresses = ("/backfills/", f"/backfills/{january.pk}/")
    for address in addresses:
        assert " left</" in browser.get(address).content.decode()
    pause_backfill(january, user=vera)
    for address in addresses:
        text = browser.get(address).content.decode()
        assert "Paused" in text
        assert "2 still running" in text
        assert " left</" not in text


def test_time_left_is_told_by_the_pace_of_the_latest_runs(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "succeeded", 10, seconds=1.0)
    runs_of(january, "running", 1, seconds=1.0)
    text = listed(browser)
    assert "partitions/min" in text or "partitions/s" in text
    assert " left</div>" in text


def test_one_of_a_group_is_listed_by_the_group(browser: Client, vera: User) -> None:
    asset("days", DAILY_2013)
    asset("hours", DAILY_2013)
    Asset.objects.update(group="shop")
    request = request_from_text(asset_group="shop", start="2013-01-01", end="2013-01-02")
    backfill = create_backfill(request, user=vera)
    text = " ".join(re.sub("<[^>]*>", "", listed(browser)).split())
    assert "group shop (2 assets)" in text
    assert (
        f"<title>{backfill.name} · Slicewise</title>"
        in browser.get(f"/backfills/{backfill.pk}/").content.decode()
    )
