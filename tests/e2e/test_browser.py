"""A person at a browser: signs in, starts a backfill, watches it, and looks at its data."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.browser_pages import opened_browser, sign_in_as_admin


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    """Open a new browser on the sign-in page."""
    with opened_browser(stack) as page:
        yield page


def cell(page: Page, title: str) -> Locator:
    """Find a cell of the grid by its name."""
    return page.locator(f'.partition-grid a[aria-label^="{title}"]')


def test_from_sign_in_to_a_finished_backfill(page: Page, stack: Stack, api: Client) -> None:
    expect(page).to_have_url(f"{stack.web_url}/sign-in/?next=/")
    sign_in_as_admin(page, stack)

    page.get_by_role("link", name="Backfills").click()
    page.get_by_role("link", name="New backfill").first.click()
    page.get_by_label("Asset", exact=True).fill("slow")
    page.keyboard.press("Tab")
    page.locator("#id_start").fill("2024-02-03")
    page.locator("#id_end").fill("2024-02-05")
    page.get_by_text("Advanced:").click()
    page.get_by_label("Description").fill("three days of February")
    # The preview follows the form by itself, before anything is started.
    expect(page.locator("#preview")).to_contain_text("3 partitions in 3 runs")
    page.get_by_role("button", name="Start backfill").click()

    # Its page shows the end without being asked again.
    expect(page.get_by_role("heading", name="backfill_slow_")).to_be_visible()
    progress = page.locator("#progress")
    expect(progress).to_contain_text("Succeeded")
    expect(progress).to_contain_text("3 of 3")
    expect(page.get_by_text("three days of February")).to_be_visible()

    page.goto("/assets/slow/?at=2024-02")
    for day in (3, 4, 5):
        expect(cell(page, f"2024-02-0{day}: materialized")).to_be_visible()
    expect(cell(page, "2024-02-06: missing")).to_be_visible()

    cell(page, "2024-02-04").click()
    expect(page.get_by_role("heading", name="2024-02-04")).to_be_visible()


def test_a_failed_run_shows_its_error_and_its_log(page: Page, stack: Stack, api: Client) -> None:
    sign_in_as_admin(page, stack)
    page.goto("/assets/broken/materialize/?selection=2024-02-01")
    page.get_by_role("button", name="Materialize").click()
    expect(page.get_by_text("ValueError: the airport is closed: fog").first).to_be_visible()
    expect(page.locator(".log")).to_contain_text("looking out of the window")


def test_an_error_is_named_turns_start_off_and_creates_nothing(
    page: Page, stack: Stack, api: Client
) -> None:
    before = len(list(api.every("/backfills/")))
    sign_in_as_admin(page, stack)
    page.goto("/backfills/new/")
    page.get_by_label("Asset", exact=True).fill("slow")
    page.keyboard.press("Tab")
    page.locator("#id_start").fill("2024-02-30")
    page.locator("#id_end").fill("2024-02-05")
    expect(page.locator("#preview")).to_contain_text("2024-02-30")
    expect(page.get_by_role("button", name="Start backfill")).to_be_disabled()
    # The form is sent past the button.
    with page.expect_response(lambda answer: answer.request.method == "POST") as refused:
        page.locator("#trigger").evaluate("form => form.submit()")
    assert refused.value.status == 400
    expect(page.locator("#id_start_error")).to_contain_text("2024-02-30")
    assert len(list(api.every("/backfills/"))) == before


def test_nobody_sees_anything_without_signing_in(page: Page, stack: Stack) -> None:
    for address in ("/", "/assets/", "/assets/slow/", "/backfills/new/", "/runs/", "/admin/"):
        page.goto(address)
        expect(page.get_by_label("Password")).to_be_visible()


def test_a_backfill_is_previewed_paused_and_resumed_to_its_end(
    page: Page, stack: Stack, lake: Path
) -> None:
    sign_in_as_admin(page, stack)
    page.goto("/backfills/new/?asset=held&start=2024-02-10&end=2024-02-13&max_active_runs=1")
    expect(page.locator("#preview")).to_contain_text("4 partitions in 4 runs")
    page.get_by_role("button", name="Start backfill").click()
    progress = page.locator("#progress")
    expect(progress).to_contain_text("Running")
    progress.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused, no new runs start")).to_be_visible()
    expect(progress).to_contain_text("Paused")
    progress.get_by_role("button", name="Resume").click()
    # Until now nothing has changed that the page would draw anew beneath the pointer.
    may_end = lake / "trials" / "held-may-end"
    may_end.parent.mkdir(parents=True, exist_ok=True)
    may_end.touch()
    expect(progress).to_contain_text("4 of 4")
    expect(progress).not_to_contain_text("Running")
    expect(page.get_by_role("img", name="Runs that ended")).to_be_visible()
