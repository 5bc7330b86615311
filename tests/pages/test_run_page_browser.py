"""The page of a run in a real browser: the log wraps and follows as its boxes say."""

from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Run, RunAttempt, RunLog, RunState
from tests.factories import asset
from tests.pages.real_browser import opened_page
from tests.pages.run_records import recorded_run

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
FROM_END = "log => log.scrollHeight - log.clientHeight - log.scrollTop"


def write(attempt: RunAttempt, sequence: int) -> None:
    """Write the next lines of a log, more than the page shows at once, and a long one."""
    lines = [f"line {sequence}.{number}\n" for number in range(40)]
    text = "".join([*lines, "wide " * 200, f"\nend of {sequence}\n"])
    RunLog.objects.create(attempt=attempt, sequence=sequence, text=text)


def expect_lines(page: Page, sequence: int, *, at_end: bool) -> None:
    """Expect the lines in the log, and the log to be at its end or not."""
    expect(page.locator(".log")).to_contain_text(f"end of {sequence}\n")
    assert (page.locator(".log").evaluate(FROM_END) < 5) == at_end


def test_the_log_wraps_and_follows_as_its_boxes_say(
    live_server: LiveServer, browser: Client
) -> None:
    run = recorded_run(asset("talker"), RunState.RUNNING, "", started_at=timezone.now())
    attempt = RunAttempt.objects.create(run=run, number=1, token=uuid4(), started_at=timezone.now())
    write(attempt, 1)
    with opened_page(live_server.url, browser) as page:
        page.goto(f"/runs/{run.pk}/")
        expect_lines(page, 1, at_end=True)
        is_wide = "log => log.scrollWidth > log.clientWidth"
        assert not page.locator(".log").evaluate(is_wide)
        page.get_by_label("Wrap lines").uncheck()
        assert page.locator(".log").evaluate(is_wide)
        write(attempt, 2)
        expect_lines(page, 2, at_end=True)
        page.get_by_label("Follow").uncheck()
        write(attempt, 3)
        expect_lines(page, 3, at_end=False)
        page.goto(f"/runs/{run.pk}/log/search/?q=wide")
        assert not page.locator(".log").evaluate(is_wide)
        page.get_by_label("Wrap lines").uncheck()
        assert page.locator(".log").evaluate(is_wide)


def test_details_stay_while_a_reader_selects_text_and_keep_the_focus(
    live_server: LiveServer, browser: Client
) -> None:
    run = recorded_run(asset("talker"), RunState.RUNNING, "", started_at=timezone.now())
    with opened_page(live_server.url, browser) as page:
        page.goto(f"/runs/{run.pk}/")
        details = page.locator("#facts")
        link = details.get_by_role("link", name="talker", exact=True)
        link.focus()
        Run.objects.filter(pk=run.pk).update(state="publishing")
        expect(details).to_contain_text("Publishing")
        expect(link).to_be_focused()
        select = "facts => getSelection().selectAllChildren(facts.querySelector('dl'))"
        details.evaluate(select)
        ended = {"state": "failed", "error": "no rows", "error_kind": "code"}
        with page.expect_response(lambda answer: "/status/" in answer.url and answer.ok):
            Run.objects.filter(pk=run.pk).update(ended_at=timezone.now(), **ended)
        # The next poll after the end of the selection brings all at once.
        assert "Publishing" in page.evaluate("getSelection().toString()")
        page.evaluate("getSelection().removeAllRanges()")
        expect(details).to_contain_text("Failed")
        expect(page.locator("#status")).to_contain_text("no rows")


def test_a_message_about_an_action_ends_after_the_end_of_the_run(
    live_server: LiveServer, browser: Client
) -> None:
    run = recorded_run(asset("talker"), RunState.RUNNING, "", started_at=timezone.now())
    with opened_page(live_server.url, browser) as page:
        page.goto(f"/runs/{run.pk}/")
        page.evaluate(
            """() => document.querySelector("#status").insertAdjacentHTML(
                "beforebegin", '<div class="alert" data-passing>Run 1 is queued.</div>'
            )"""
        )
        Run.objects.update(state=RunState.FAILED, error="no rows", ended_at=timezone.now())
        # No poll follows the poll that brings the end.
        expect(page.locator("#status .state")).to_contain_text("Failed")
        expect(page.locator("[data-passing]")).to_have_count(1)
        expect(page.locator("[data-passing]")).to_have_count(0)
