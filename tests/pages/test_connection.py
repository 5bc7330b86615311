"""Open pages that lose their session or their server, and durations that count by themselves."""

import re

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from assets_app.models import RunState
from tests.factories import DAILY_2013, asset
from tests.pages.run_records import failed_run, recorded_run


def answer_with_a_fault(page: Page, address: re.Pattern[str], fault: str) -> None:
    """Let requests of the page for the address fail: by an error of the server, or unanswered."""
    page.route(
        address, lambda route: route.fulfill(status=500) if fault == "error" else route.abort()
    )


@pytest.mark.django_db
def test_a_script_of_a_page_whose_session_has_ended_gets_no_page_but_the_way_back() -> None:
    headers = {"hx-request": "true", "hx-current-url": "http://testserver/runs/?state=failed"}
    answer = Client().get("/runs/listed/?version=1", headers=headers)
    assert answer.status_code == 401
    assert answer.content == b""
    assert answer["Slicewise-Sign-In"] == "/sign-in/?next=/runs/%3Fstate%3Dfailed"
    elsewhere = {"hx-request": "true", "hx-current-url": "https://elsewhere.example/runs/"}
    assert Client().get("/runs/listed/", headers=elsewhere)["Slicewise-Sign-In"].endswith("next=/")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_page_whose_session_has_ended_leads_to_the_sign_in_page_and_back(page: Page) -> None:
    failed_run(asset("raw_flights", DAILY_2013))
    page.goto("/runs/?state=failed")
    Session.objects.all().delete()
    page.wait_for_url("**/sign-in/?next=/runs/%3Fstate%3Dfailed")
    expect(page.get_by_label("Username")).to_have_count(1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_page_says_when_the_server_is_away_and_when_it_is_back(page: Page) -> None:
    failed_run(asset("raw_flights", DAILY_2013))
    page.goto("/runs/")
    notice = page.get_by_text("No answer from the server since")
    expect(page.get_by_text("no rows")).to_be_visible()
    expect(notice).to_have_count(0)
    page.context.set_offline(True)
    expect(notice).to_be_visible()
    page.context.set_offline(False)
    expect(notice).to_have_count(0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_duration_of_a_run_counts_while_nothing_else_changes(page: Page) -> None:
    flights = asset("raw_flights", DAILY_2013)
    run = recorded_run(flights, RunState.RUNNING, started_at=timezone.now())
    for address in (f"/runs/{run.pk}/", "/runs/"):
        page.goto(address)
        counted = page.locator("[data-elapsed]").first
        first = counted.inner_text()
        page.wait_for_function(
            "first => document.querySelector('[data-elapsed]').innerText !== first", arg=first
        )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_dark_pages_stay_dark_after_the_admin_site_has_kept_a_theme(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.evaluate("localStorage.setItem('theme', 'auto')")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.locator(".sw-menu summary").click()
    page.get_by_role("button", name="Toggle theme").click()
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", ["error", "away"])
def test_a_panel_of_the_graph_without_an_answer_is_loaded_again_on_request(
    page: Page, fault: str
) -> None:
    asset("raw_flights", DAILY_2013)
    page.goto("/assets/graph/all/")
    address = re.compile("/raw_flights/.*fragment=panel")
    answer_with_a_fault(page, address, fault)
    page.locator("[data-node]").click()
    panel = page.get_by_label("Selected asset")
    expect(panel).to_contain_text("The server did not answer.")
    page.unroute(address)
    panel.get_by_role("button", name="Try again").click()
    expect(panel.get_by_role("link", name="raw_flights")).to_be_visible()
    expect(panel.get_by_role("alert")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", ["error", "away"])
def test_a_drawer_without_an_answer_shows_no_other_partition_and_is_loaded_again(
    page: Page, fault: str
) -> None:
    asset("daily", DAILY_2013)
    page.goto("/assets/daily/?zoom=month&at=2013-03-01")
    page.locator("[aria-label^='2013-03-04']").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_role("heading", name="2013-03-04")).to_be_visible()
    address = re.compile("/partitions/2013-03-05/")
    answer_with_a_fault(page, address, fault)
    drawer.get_by_role("link", name="Next").click()
    expect(drawer).to_contain_text("The server did not answer.")
    expect(drawer.get_by_role("heading", name="2013-03-05")).to_be_visible()
    expect(drawer.get_by_role("link", name="Materialize")).to_have_count(0)
    page.unroute(address)
    drawer.get_by_role("button", name="Try again").click()
    expect(drawer.get_by_role("heading", name="2013-03-05")).to_be_visible()
    expect(drawer).not_to_have_attribute("aria-busy", "true")
