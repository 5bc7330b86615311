"""The log on the page of a run: the end, a search, and levels, of logs of any size."""

import re
from collections.abc import Sequence
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from assets_app.models import Asset, Run, RunAttempt, RunLog, RunState
from assets_app.queries.run_logs import MOST_CHARACTERS
from tests.factories import asset
from tests.pages.markup import page_at
from tests.pages.run_records import failed_run, recorded_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def talker() -> Asset:
    return asset("talker")


def printed(run: Run, blocks: Sequence[str], number: int = 1) -> Run:
    """Record the blocks as the output of an attempt at the run."""
    ended = {"ended_at": run.ended_at, "outcome": "failed"} if run.ended_at else {}
    attempt = RunAttempt.objects.create(
        run=run, number=number, token=uuid4(), started_at=timezone.now(), **ended
    )
    RunLog.objects.bulk_create(
        RunLog(attempt=attempt, sequence=sequence, text=text)
        for sequence, text in enumerate(blocks, 1)
    )
    return run


def test_the_page_has_the_end_of_a_huge_log_and_no_more(browser: Client, talker: Asset) -> None:
    blocks = [f"block {number}\n" + "x" * 65_000 + "\n" for number in range(300)]
    run = printed(failed_run(talker), blocks)
    page = page_at(browser, f"/runs/{run.pk}/")
    assert "block 299" in page
    assert "block 290\n" not in page
    assert "Showing the end of the log" in page
    assert len(page) < MOST_CHARACTERS + 50_000
    answer = browser.get(f"/runs/{run.pk}/log/?after=1.1")
    text = answer.content.decode()
    assert "block 1\n" in text
    assert len(text) < MOST_CHARACTERS + 1000
    assert answer.status_code == 200  # the end is still to come


def test_lines_are_found_by_text_and_by_level(browser: Client, talker: Asset) -> None:
    run = printed(failed_run(talker), ["INFO begin\nWARN Late file\n", "ERROR no rows\nINFO end\n"])
    address = f"/runs/{run.pk}/log/search/"
    for query, lines in {
        "?q=LATE": ["WARN Late file"],
        "?level=error": ["ERROR no rows"],
        "?level=warning": ["WARN Late file", "ERROR no rows"],
        "?q=info": ["INFO begin", "INFO end"],
        "?q=late&level=error": [],
        "?level=nonsense&q=begin": ["INFO begin"],
    }.items():
        page = page_at(browser, address + query)
        shown = re.search(r'<pre class="log"[^>]*>(.*?)</pre>', page, re.DOTALL)
        assert (shown[1].split("\n")[:-1] if shown else []) == lines, query


def test_a_masked_secret_is_not_found(browser: Client, talker: Asset) -> None:
    run = printed(failed_run(talker), ["login with password=hunter2 works\n"])
    address = f"/runs/{run.pk}/log/search/"
    assert "hunter2" not in page_at(browser, f"{address}?q=login")
    assert "No matching line" in page_at(browser, f"{address}?q=hunter")


def test_a_huge_log_is_searched_part_by_part(browser: Client, talker: Asset) -> None:
    blocks = ["the needle\n", *("y" * 65_000 + "\n" for _ in range(150))]
    run = printed(failed_run(talker), blocks)
    address, pages = f"/runs/{run.pk}/log/search/?q=needle", 0
    while "the needle" not in (page := page_at(browser, address)):
        earlier = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
        assert earlier
        address = f"/runs/{run.pk}/log/search/{earlier[1].replace('&amp;', '&')}"
        pages += 1
    assert 1 <= pages <= 5
    assert "Search earlier lines" not in page


def test_many_matching_lines_are_cut_and_the_rest_can_be_asked_for(
    browser: Client, talker: Asset
) -> None:
    run = printed(failed_run(talker), [f"line {number}\n" * 400 for number in range(3)])
    page = page_at(browser, f"/runs/{run.pk}/log/search/?q=line")
    assert "400 lines" in page
    earlier = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
    assert earlier
    rest = page_at(browser, f"/runs/{run.pk}/log/search/{earlier[1].replace('&amp;', '&')}")
    assert "line 1" in rest


def test_the_error_comes_first_and_the_log_before_attempts_and_partitions(
    browser: Client, talker: Asset
) -> None:
    run = printed(failed_run(talker, error="ValueError: no rows"), ["hello\n"])
    page = page_at(browser, f"/runs/{run.pk}/").split('id="main"')[1]
    places = [page.index(text) for text in ("ValueError: no rows", "Triggered by", ">Log<")]
    places += [page.index(">Attempts<"), page.index(">Partitions</h2>")]
    assert places == sorted(places)


def test_the_fragment_below_the_log_learns_of_attempts(browser: Client, talker: Asset) -> None:
    run = recorded_run(talker, RunState.RUNNING, started_at=timezone.now())
    page = page_at(browser, f"/runs/{run.pk}/")
    again = re.search(r'hx-get="(/runs/\d+/more/\?version=[^"]*)"', page)
    assert again
    assert browser.get(again[1]).status_code == 204
    printed(run, [])
    assert ">Attempts<" in browser.get(again[1]).content.decode()


def test_a_log_costs_the_same_statements_for_few_blocks_and_for_many(
    browser: Client, talker: Asset
) -> None:
    counts = []
    for number in (1, 100):
        run = printed(failed_run(talker), ["x\n"] * number)
        with CaptureQueriesContext(connection) as statements:
            page_at(browser, f"/runs/{run.pk}/")
        counts.append(len(statements))
    assert counts[0] == counts[1]
