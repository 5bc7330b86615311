"""Each action of the pages that writes, on a whole stack: what the page says, and what the API says
afterwards. `test_browser.py` starts, pauses and resumes a backfill, and materializes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from playwright.sync_api import Page, expect

from slicewise_server.stack.demo.client import ApiError, Client
from slicewise_server.stack.stack import ADMIN, Stack
from tests.e2e.browser_pages import opened_browser, says, sign_in, sign_in_as_admin
from tests.e2e.conftest import ended, run_of
from tests.pages.opened_pages import opened
from tests.pages.page_list import ADMIN as ADMIN_PAGES
from tests.pages.page_list import PAGES, Things, addresses

FIRST_PASSWORD, SECOND_PASSWORD = "a tailwind from Oslo", "a headwind from Bergen"


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    """Open a browser in which the administrator is signed in."""
    with opened_browser(stack) as page:
        sign_in_as_admin(page, stack)
        yield page


@pytest.fixture
def may_end(lake: Path) -> Iterator[Path]:
    """Return the file that ends the runs of the asset `waits`, which does not exist yet."""
    file = lake / "trials" / "paged-may-end"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    yield file
    file.touch()


def press(page: Page, button: str) -> None:
    page.get_by_role("button", name=button, exact=True).click()


def follow(page: Page, link: str) -> None:
    page.get_by_role("link", name=link, exact=True).click()


def select(page: Page, backfills: list[Any]) -> None:
    page.goto("/backfills/?asset=waits")
    for backfill in backfills:
        page.get_by_label(f"Select {backfill['name']}", exact=True).check()


def test_a_backfill_is_changed_cloned_canceled_retried_and_deleted(
    page: Page, api: Client, may_end: Path
) -> None:
    first = api.post("/backfills/", asset="waits", selection="2024-01-01..2024-01-03")
    address = f"/backfills/{first['id']}/"

    page.goto(address)
    follow(page, "Edit…")
    page.get_by_label("Max active runs").fill("1")
    page.get_by_label("Description").fill("changed by a page")
    press(page, "Save")
    says(page, f"{first['name']} updated.")
    changed = api.get(address)
    assert (changed["max_active_runs"], changed["description"]) == (1, "changed by a page")

    follow(page, "Clone…")
    page.locator("#id_start").fill("2024-01-10")
    page.locator("#id_end").fill("2024-01-11")
    expect(page.locator("#start-backfill")).to_contain_text("2 partitions")
    page.locator("#start-backfill").click()
    says(page, "created.")
    second = api.get(f"/backfills/{page.url.rstrip('/').rsplit('/', 1)[1]}/")
    assert second["description"] == "changed by a page"

    both = [first, second]
    select(page, both)
    press(page, "Pause")
    says(page, "2 backfills: paused")
    assert all(api.get(f"/backfills/{backfill['id']}/")["paused"] for backfill in both)
    select(page, both)
    press(page, "Resume")
    says(page, "2 backfills: resumed.")
    select(page, both)
    press(page, "Cancel…")
    press(page, "Cancel 2 backfills")
    says(page, "2 backfills: canceling.")
    for backfill in both:
        assert ended(api, f"/backfills/{backfill['id']}/")["state"] == "canceled"

    page.goto(address)
    expect(page.locator("#progress")).to_contain_text("Canceled")
    may_end.touch()
    page.get_by_role("link", name="Retry 3 canceled…").click()
    press(page, "Retry backfill")
    says(page, f"{first['name']}: retrying.")
    expect(page.locator("#progress")).to_contain_text("Succeeded")
    assert api.get(address)["state"] == "succeeded"

    select(page, [second])
    press(page, "Delete…")
    press(page, "Delete backfill")
    says(page, "1 backfill: deleted.")
    assert second["id"] not in {row["id"] for row in api.every("/backfills/?asset=waits")}
    page.goto(address)
    follow(page, "Delete…")
    press(page, "Delete backfill")
    says(page, f"{first['name']}: deleted.")
    assert not list(api.every("/backfills/?asset=waits"))


def test_a_run_is_canceled_retried_and_run_again(page: Page, api: Client, may_end: Path) -> None:
    run = run_of(api, "waits", selection="2024-02-01")
    page.goto(run)
    follow(page, "Cancel…")
    press(page, "Cancel run")
    says(page, "is cancel")
    assert ended(api, run)["state"] == "canceled"
    may_end.touch()
    follow(page, "Retry…")
    press(page, "Retry run")
    number = run.split("/")[2]
    says(page, f"Retrying run {number}.")
    expect(page.locator("#status")).to_contain_text("Succeeded")
    retried = api.get(run)
    assert (retried["state"], retried["attempt_count"]) == ("succeeded", 2)

    follow(page, "Re-run…")
    press(page, "Start re-run")
    says(page, f"(re-run of {number})")
    expect(page.locator("#status")).to_contain_text("Succeeded")
    again = api.get(f"/runs/{page.url.rstrip('/').rsplit('/', 1)[1]}/")
    assert (again["selection"], again["attempt_count"]) == ("2024-02-01", 1)


def test_an_asset_is_paused_and_gets_partitions_and_reports(page: Page, api: Client) -> None:
    page.goto("/assets/waits/?tab=schedule")
    press(page, "Unpause")
    says(page, "waits unpaused.")
    assert not api.get("/assets/waits/")["paused"]
    page.goto("/assets/waits/?tab=schedule")
    press(page, "Pause")
    says(page, "waits paused.")
    assert api.get("/assets/waits/")["paused"]

    page.goto("/assets/guests/")
    page.get_by_label("Partition key").fill("ada")
    press(page, "Add partition")
    says(page, "ada added.")
    assert [row["key"] for row in api.every("/assets/guests/partitions/")] == ["ada"]
    page.goto("/assets/guests/partitions/ada/")
    press(page, "Remove partition")
    says(page, "ada removed; history is kept.")
    assert not list(api.every("/assets/guests/partitions/"))

    page.goto("/assets/brought/report-write/")
    page.get_by_label("Partitions").fill("2024-01-05")
    expect(page.locator("#selected")).to_contain_text("1 partition")
    page.get_by_label("Row count").fill("7")
    press(page, "Record materialization")
    says(page, "Materialization of 1 partition recorded.")
    (reported,) = api.every("/assets/brought/partitions/?state=materialized")
    assert reported["key"] == "2024-01-05"


def test_channels_and_alert_rules_are_created_changed_and_deleted(page: Page, api: Client) -> None:
    page.goto("/alerts/new-channel/")
    page.get_by_label("Name").fill("paged")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address", exact=True).fill("https://hooks.example.org/s3cret")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Signing key of paged")).to_be_visible()
    follow(page, "Done")
    expect(page.get_by_role("link", name="paged", exact=True)).to_be_visible()
    assert "s3cret" not in str(api.get("/channels/paged/"))

    page.goto("/alerts/new-rule/")
    page.get_by_label("Name").fill("paged failures")
    page.get_by_label("Channel").select_option("paged")
    page.get_by_label("Assets").fill("guests")
    press(page, "Save")
    says(page, "Alert rule “paged failures” saved.")
    assert api.get("/alert-rules/paged%20failures/")["assets"] == ["guests"]
    follow(page, "paged failures")
    page.get_by_label("Active", exact=True).uncheck()
    press(page, "Save")
    says(page, "Alert rule “paged failures” saved.")
    assert not api.get("/alert-rules/paged%20failures/")["active"]

    for name, link, address in (
        ("paged failures", "rule", "/alert-rules/paged%20failures/"),
        ("paged", "channel", "/channels/paged/"),
    ):
        follow(page, name)
        follow(page, "Delete…")
        press(page, f"Delete {link}")
        says(page, "deleted.")
        with pytest.raises(ApiError, match="404"):
            api.get(address)


def test_an_account_creates_and_revokes_tokens_changes_its_password_and_signs_out(
    page: Page, stack: Stack, database: psycopg.Connection
) -> None:
    page.goto("/admin/accounts_app/user/add/")
    page.get_by_label("Username").fill("ola")
    page.get_by_label("Password:", exact=True).fill(FIRST_PASSWORD)
    page.get_by_label("Password confirmation").fill(FIRST_PASSWORD)
    press(page, "Save")
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    page.goto("/")
    page.get_by_title(f"Menu of {ADMIN}").click()
    press(page, "Sign out")
    expect(page.get_by_label("Password")).to_be_visible()

    sign_in(page, "ola", FIRST_PASSWORD)
    program = Client(stack.web_url, "ola", FIRST_PASSWORD)
    assert list(program.every("/assets/"))
    page.goto("/account/")
    page.get_by_role("button", name="Revoke").click()
    says(page, "revoked.")
    with pytest.raises(ApiError, match="401"):
        program.get("/assets/")
    page.get_by_label("Expires").select_option("in 7 days")
    page.get_by_label("Password", exact=True).fill(FIRST_PASSWORD)
    press(page, "Create token")
    token = page.get_by_label("New token").input_value()
    assert answers_to(stack, token) == 200
    page.goto("/account/")
    expect(page.get_by_label("New token")).to_have_count(0)
    assert token not in page.content()
    page.get_by_role("button", name="Revoke").click()
    says(page, "revoked.")
    assert answers_to(stack, token) == 401
    page.get_by_label("Old password").fill(FIRST_PASSWORD)
    page.get_by_label("New password", exact=True).fill(SECOND_PASSWORD)
    page.get_by_label("Confirm new password").fill(SECOND_PASSWORD)
    press(page, "Change password")
    says(page, "Password changed.")
    press(page, "Sign out everywhere")
    says(page, "You are signed out everywhere")
    sign_in(page, "ola", SECOND_PASSWORD)
    rows = database.execute("SELECT action FROM accounts_app_auditentry WHERE actor_name = 'ola'")
    assert {"revoke", "change password", "sign out"} <= {action for (action,) in rows}


def answers_to(stack: Stack, token: str) -> int:
    """Return the status by which the API answers a program with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{stack.web_url}/api/v1/assets/", headers=headers, timeout=30).status_code


def things_of(api: Client) -> Things:
    """Return things of the stack that the addresses of pages name."""
    failed = run_of(api, "broken", selection="2024-02-03")
    ended(api, failed)
    backfill = api.post("/backfills/", asset="paged_hours", selection="2024-01-01")
    ended(api, f"/backfills/{backfill['id']}/")
    return {
        "word": "flights", "user": 1,
        "asset": "broken", "day": "2024-02-01", "hourly_asset": "paged_hours", "hour": "2024-01-01",
        "product_asset": "delays_by_origin", "product_day": "2013-01-01",
        "scheduled_asset": "waits", "found_asset": "guests", "external_asset": "brought",
        "whole_asset": "carriers", "selection": "2024-02", "failed_key": "2024-02-03",
        "failed_run": failed.split("/")[2],
        "ended_backfill": backfill["id"],
        "backfill_fields": "asset=slow&start=2024-02-01&end=2024-02-03",
    }  # fmt: skip


def test_every_page_opens_without_a_complaint(page: Page, api: Client) -> None:
    things = things_of(api)
    statuses = {}
    for address in (*addresses(PAGES, things), *addresses(ADMIN_PAGES, things)):
        answer = opened(page, address)
        assert answer
        statuses[address] = answer.status
    errors = {address: status for address, status in statuses.items() if status != 200}
    assert errors == {"/runs/999999999/": 404}
