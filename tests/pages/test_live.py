"""Lists that update themselves: answers to polls, and no disturbance for readers."""

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import DAILY_2013, asset
from tests.pages.markup import polled_address
from tests.pages.run_records import failed_partition, failed_run

# How many requests begin with the event itself.
_SHOW_AGAIN = """() => {
    let begun = 0;
    document.addEventListener("htmx:beforeRequest", () => { begun += 1; });
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
    return begun;
}"""


@pytest.mark.django_db
@pytest.mark.usefixtures("same_hour")
@pytest.mark.parametrize("address", ["/", "/runs/", "/runs/?asset=raw&state=failed"])
def test_a_list_answers_nothing_until_it_has_changed(browser: Client, address: str) -> None:
    flights = asset("raw_flights", DAILY_2013)
    failed_partition(flights, "2013-01-05")
    again = polled_address(browser.get(address).content.decode())
    assert browser.get(again).status_code == 204
    run = failed_partition(flights, "2013-01-06")
    answer = browser.get(again)
    assert answer.status_code == 200
    text = answer.content.decode()
    assert f"/runs/{run.pk}/" in text
    assert "<html" not in text
    assert browser.get(polled_address(text)).status_code == 204


@pytest.mark.django_db
def test_a_list_that_is_asked_again_keeps_its_filters_and_its_page(browser: Client) -> None:
    flights, other_asset = asset("raw_flights", DAILY_2013), asset("other", DAILY_2013)
    runs = [failed_run(flights) for _ in range(51)]
    again = polled_address(browser.get("/runs/?asset=raw&page=2&zzz=1").content.decode())
    assert again.startswith("/runs/listed/?asset=raw&page=2&version=")
    failed_run(other_asset)
    assert browser.get(again).status_code == 204
    failed_run(flights)
    text = browser.get(again).content.decode()
    assert f'id="run-{runs[1].pk}"' in text
    assert f'id="run-{runs[2].pk}"' not in text
    assert 'href="?asset=raw&amp;page=1"' in text


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_list_grows_where_it_is_looked_at_and_moves_nobody(page: Page) -> None:
    flights = asset("raw_flights", DAILY_2013)
    runs = [failed_run(flights) for _ in range(40)]
    page.goto("/runs/")
    link = page.get_by_role("link", name=str(runs[5].pk), exact=True)
    link.scroll_into_view_if_needed()
    link.focus()
    before = link.bounding_box()
    new = failed_run(flights)
    expect(page.locator(f"#run-{new.pk}")).to_be_attached()
    expect(link).to_be_focused()
    after = link.bounding_box()
    assert before
    assert after
    assert abs(before["y"] - after["y"]) < 2

    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    hidden = failed_run(flights)
    page.wait_for_timeout(4000)
    assert requests == []
    # The list is asked for at once, and not when its next turn comes.
    assert page.evaluate(_SHOW_AGAIN) == 1
    expect(page.locator(f"#run-{hidden.pk}")).to_be_attached()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_focus_stays_in_its_row_where_rows_have_the_same_links(page: Page) -> None:
    flights = asset("raw_flights", DAILY_2013)
    runs = [failed_run(flights) for _ in range(3)]
    page.goto("/runs/")
    link = page.locator(f"#run-{runs[0].pk}").get_by_role("link", name="raw_flights")
    link.focus()
    new = failed_run(flights)
    expect(page.locator(f"#run-{new.pk}")).to_be_attached()
    expect(link).to_be_focused()
