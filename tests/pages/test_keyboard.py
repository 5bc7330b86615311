"""The way from a failure to a backfill and its end, by the keyboard alone."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from assets_app.models import Run
from backfills_app.models import Backfill
from tests.factories import DAILY_2013, asset, give_password
from tests.pages.keyboard import Keyboard
from tests.pages.run_records import failed_partition
from tests.pages.watched_page import watch

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery"


def test_from_a_failure_to_a_canceled_backfill_by_the_keyboard_alone(
    page: Page, vera: User, live_server: LiveServer, settings: Any
) -> None:
    give_password(vera, PASSWORD, settings)
    failed = failed_partition(asset("flights", DAILY_2013), "2013-01-05", error="no rows")
    watching = watch(page, live_server.url)
    keys = Keyboard(page)
    keys.report_lost_focus()
    page.context.clear_cookies()
    # The focus is in sight at once, without a scroll that takes a while.
    page.emulate_media(reduced_motion="reduce")

    page.goto("/sign-in/")
    page.keyboard.type("vera")
    keys.fill(page.get_by_label("Password"), PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    keys.follow(page.locator(".failure").get_by_role("link", name="Open run"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {failed.pk}")
    keys.follow(page.get_by_role("link", name="Retry…"))
    keys.follow(page.get_by_role("button", name="Retry run"))
    expect(page.locator("#status")).to_contain_text("Queued")
    assert Run.objects.get().state == "queued"

    keys.follow(page.get_by_role("link", name="Backfills"))
    keys.follow(page.get_by_role("link", name="New backfill").first)
    keys.fill(page.get_by_label("Asset", exact=True), "flights")
    keys.fill(page.locator("#id_start"), "2013-03-01")
    keys.fill(page.locator("#id_end"), "2013-03-03")
    keys.tab_to(page.get_by_label("Missing and failed"))
    page.keyboard.press("ArrowDown")
    start = page.locator("#start-backfill")
    expect(start).to_contain_text("3 partitions")
    keys.follow(start)
    expect(page.get_by_role("heading", level=1)).to_contain_text("backfill_flights")
    backfill = Backfill.objects.get()
    keys.follow(page.get_by_role("link", name="Cancel…"))
    keys.follow(page.get_by_role("button", name="Cancel backfill"))
    expect(page.locator("#progress")).to_contain_text("ancel")
    backfill.refresh_from_db()
    assert backfill.state in ("canceling", "canceled")
    watching.read_answers()
    watching.fail_if_any()
