"""The search of everything, the audit log, and the menu of the person."""

import re
from html import unescape

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from accounts_app import audit
from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests.clients import browser_of
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset, person
from tests.pages.backfill_records import written_backfill
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run
from tests.partition_records import record


@pytest.mark.django_db
def test_assets_runs_backfills_and_partitions_are_found_by_their_names(
    browser: Client, vera: User
) -> None:
    flights = asset("raw_flights", DAILY_2013, description="Flights of a day")
    asset("by_airport", DAY_BY_AIRPORT)
    for name in ("raw bus trips", "trips of a bus at night", "my raw_flights of a shop"):
        asset(name, DAILY_2013)
    run = failed_run(flights)
    january = written_backfill(vera, description="January again")
    for words, address in {
        "flig": "/assets/raw_flights/",
        "of a day": "/assets/raw_flights/",
        str(run.pk): f"/runs/{run.pk}/",
        f"run {run.pk}": f"/runs/{run.pk}/",
        f"Run {run.pk}": f"/runs/{run.pk}/",
        "January": f"/backfills/{january.pk}/",
        "nyc": "/bundles/",
        "raw_flights 2013-05-03": "/assets/raw_flights/partitions/2013-05-03/",
        "raw bus trips 2013-05-03": "/assets/raw%20bus%20trips/partitions/2013-05-03/",
        "trips of a bus at night 2013-05-03": (
            "/assets/trips%20of%20a%20bus%20at%20night/partitions/2013-05-03/"
        ),
        "raw_flights  2013-05, 2013-06": "/assets/raw_flights/?selection=2013-05-01..2013-06-30",
        f"raw_flights {', '.join(f'2013-05-{day:02}' for day in range(1, 13))}": (
            "/assets/raw_flights/?selection=2013-05-01..2013-05-12"
        ),
        "raw_flights 2013-05, 2013-06": "/assets/raw_flights/?selection=2013-05-01..2013-06-30",
        "airport 2013-05-03|JFK": "/assets/by_airport/partitions/2013-05-03%7CJFK/",
    }.items():
        page = page_at(browser, f"/search/?q={words}")
        assert f'href="{address}"' in page.split('id="main"')[1], words
    assert "Failed</span>" in page_at(browser, f"/search/?q={run.pk}").split('id="main"')[1]
    label = january.get_state_display()
    assert f"{label}</span>" in page_at(browser, "/search/?q=January").split('id="main"')[1]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words", ["nothing", "raw_flights 2099-01-01", "9" * 30, "%00", "<script>", "raw_flights x y"]
)
def test_a_search_without_results_says_so(browser: Client, words: str) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.get("/search/", {"q": words})
    assert "Nothing found" in answer.content.decode()
    assert "<script>" not in answer.content.decode()
    assert browser.get("/search/").status_code == 200


@pytest.mark.django_db
def test_the_example_of_a_search_finds_a_partition_or_an_asset_that_exists(browser: Client) -> None:
    def example() -> str:
        page = page_at(browser, "/search/?q=qqq")
        return unescape(page.partition("Example: ")[2].partition("<")[0])

    assert example() == ""
    assert "Change the search." in page_at(browser, "/search/?q=qqq")
    flights = asset("raw_flights", DAILY_2013)
    assert example() == "raw_flights"
    record(flights, "2013-01-04..2013-01-05")
    assert example() == "raw_flights 2013-01-05"
    assert "/partitions/2013-01-05/" in page_at(browser, f"/search/?q={example()}")
    asset("a_first", DAY_BY_AIRPORT)
    record(Asset.objects.get(name="a_first"), "date=2013-01-01 airport=JFK")
    assert example() == "a_first 2013-01-01|JFK"
    Asset.objects.update(active=False)
    assert example() == ""


@pytest.mark.django_db
def test_the_audit_log_is_searched_by_person_action_and_subject(db: None) -> None:
    ada, bob = person("ada", Role.ADMIN), person("bob")
    audit.record(ada, "pause", "asset", "raw_flights", {"token": "secret-value"})
    audit.record(bob, "cancel", "run", "17", {})
    browser = browser_of(ada)
    page = compact(page_at(browser, "/audit/?person=ad&action=pau&subject=flights"))
    assert re.search(r"<td>Pause</td>", page)
    assert "<td>Cancel</td>" not in page
    assert "secret-value" not in page
    assert "No matching entries" in page_at(browser, "/audit/?action=nothing")
    assert 'href="/audit/"' in page_at(browser, "/")


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["report_write", "report write"])
def test_the_audit_log_shows_words_and_exact_times(words: str) -> None:
    ada = person("ada", Role.ADMIN)
    audit.record(ada, "report_write", "asset", "flights", {"group": 20})
    page = compact(browser_of(ada).get("/audit/", {"action": words}).content.decode())
    assert "<td>Report write</td>" in page
    assert "request: 20" in page
    assert 'data-form="ago"' not in page


@pytest.mark.django_db
def test_the_admin_site_names_the_zone_of_its_times() -> None:
    browser = browser_of(person("ada", Role.ADMIN))
    assert "Times: UTC" in page_at(browser, "/admin/auth/group/")


@pytest.mark.django_db
def test_the_audit_log_is_for_people_of_the_admin_site(browser: Client) -> None:
    assert browser.get("/audit/").status_code == 403
    assert 'href="/audit/"' not in page_at(browser, "/")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_key_leads_to_the_search_and_the_menu_chooses_the_zone_of_times(page: Page) -> None:
    run = failed_run(asset("raw_flights", DAILY_2013))
    page.goto(f"/runs/{run.pk}/")
    page.keyboard.press("/")
    field = page.get_by_label("Search everything")
    expect(field).to_be_focused()
    page.keyboard.type("flig/")
    expect(field).to_have_value("flig/")
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="raw_flights").click()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=*")
    page.goto(f"/runs/{run.pk}/")
    page.locator(".sw-menu summary").click()
    page.get_by_label("Times in").select_option("utc")
    expect(page.locator("[data-zone-name]")).to_have_text("Times: UTC")
    created = f"{run.created_at:%-d, %Y}"
    expect(page.locator("dl time").first).to_contain_text(created)
    page.locator(".sw-menu summary").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("API docs")).to_be_hidden()
