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
from assets_app.queries import log_search
from assets_app.queries.run_logs import MOST_CHARACTERS
from tests.factories import asset
from tests.pages.markup import compact, page_at
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


def found_lines(page: str) -> list[str]:
    """Return the lines of a log that a page shows as people read them, headings included."""
    shown = re.search(r'<pre class="log"[^>]*>(.*?)</pre>', page, re.DOTALL)
    lines = shown[1].replace('<span class="log-gap">⋯</span>', "⋯\n") if shown else "\n"
    lines = re.sub(r'(<span class="log-attempt".*?</span></span>)', r"\1\n", lines)
    return re.sub(r"<(?!/?mark>)[^>]*>", "", lines).split("\n")[:-1]


def test_each_attempt_has_a_heading_in_the_log(browser: Client, talker: Asset) -> None:
    run = printed(failed_run(talker), ["first try\n", "gives up\n"])
    printed(run, ["second try\n"], 2)
    lines = found_lines(page_at(browser, f"/runs/{run.pk}/").replace(" data-follow", ""))
    began = timezone.now().strftime("%Y-%m-%d")
    assert re.fullmatch(rf"Attempt 1, started {began} [\d:]+ UTC, failed", lines[0])
    assert lines[1:3] == ["first try", "gives up"]
    assert re.fullmatch(rf"Attempt 2, started {began} [\d:]+ UTC, failed", lines[3])
    assert lines[4:] == ["second try"]


def test_a_followed_log_gets_the_heading_of_the_next_attempt_and_the_end_of_the_last(
    browser: Client, talker: Asset
) -> None:
    run = printed(recorded_run(talker, RunState.RUNNING, started_at=timezone.now()), ["a\n"])
    assert "running</span></span>a\n" in page_at(browser, f"/runs/{run.pk}/")
    RunLog.objects.create(attempt=run.attempts.get(), sequence=2, text="b\n")
    assert "log-attempt" not in page_at(browser, f"/runs/{run.pk}/log/?after=1.1")
    run.attempts.update(outcome="lost", ended_at=timezone.now())
    printed(run, ["c\n"], 2)
    answer = page_at(browser, f"/runs/{run.pk}/log/?after=1.2")
    assert "Attempt 2, started" in answer
    assert "Attempt 1, started" not in answer
    assert '<span id="attempt-1-state" hx-swap-oob="true">lost</span>' in answer


def test_the_downloaded_log_of_several_attempts_has_their_headings(
    browser: Client, talker: Asset
) -> None:
    def downloaded() -> str:
        answer = browser.get(f"/runs/{run.pk}/log/file/")
        return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]

    run = printed(failed_run(talker), ["first"])
    assert downloaded() == "first"
    printed(run, ["second\n", "third\n"], 2)
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    heading = rf"======== Attempt N, started {stamp}, failed {stamp} ========\n"
    expected = heading.replace("N", "1") + "first\n" + heading.replace("N", "2") + "second\nthird\n"
    assert re.fullmatch(expected, downloaded())


def test_lines_around_matches_are_shown_with_gaps_marked(browser: Client, talker: Asset) -> None:
    numbered = [f"line {number}\n" for number in range(40)]
    # The lines around the match 10 are in three blocks, and the lines of match 12 touch them.
    blocks = ["".join(numbered[:9]), "".join(numbered[9:11]), "".join(numbered[11:])]
    run = printed(failed_run(talker), blocks)
    printed(run, ["other 1\n", "line 10 again\n"], 2)
    address = f"/runs/{run.pk}/log/search/?q="
    lines = found_lines(page_at(browser, f"{address}line 10"))
    assert lines[0].startswith("Attempt 1, started ")
    around = [f"line {number}" for number in (7, 8, 9)]
    assert lines[1:8] == [*around, "<mark>line 10</mark>", "line 11", "line 12", "line 13"]
    assert lines[8].startswith("Attempt 2, started ")
    assert lines[9:] == ["other 1", "<mark>line 10 again</mark>"]
    two = found_lines(page_at(browser, f"{address}line 1&around=10"))
    assert two.count("⋯") == 0
    gaps = found_lines(page_at(browser, f"{address}line 3"))
    assert gaps[1:8] == [
        "line 0", "line 1", "line 2", "<mark>line 3</mark>", "line 4", "line 5", "line 6",
    ]  # fmt: skip
    assert gaps[8:12] == ["⋯", "line 27", "line 28", "line 29"]
    page = page_at(browser, f"{address}line 3")
    assert "11 matching lines, oldest first." in page
    assert "⋯</span>" not in page_at(browser, f"{address}line 3&around=0")


def test_lines_around_a_match_reach_over_the_end_of_the_searched_part(
    browser: Client, talker: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "_MOST_SEARCHED", 10)
    run = printed(failed_run(talker), ["a\nb\n", "needle 1\n", "needle 2\n", "y\nz\n"])
    address, found = f"/runs/{run.pk}/log/search/?q=needle", []
    for _ in range(4):
        page = page_at(browser, address)
        found.append(found_lines(page)[1:])
        earlier = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
        if not earlier:
            break
        address = f"/runs/{run.pk}/log/search/{earlier[1].replace('&amp;', '&')}"
    assert found == [
        [],
        ["<mark>needle 1</mark>", "<mark>needle 2</mark>", "y", "z"],
        ["a", "b", "<mark>needle 1</mark>", "<mark>needle 2</mark>"],
        [],
    ]


def test_a_search_for_nothing_shows_all_lines_without_marks(browser: Client, talker: Asset) -> None:
    run = printed(failed_run(talker), ["a\nb\n"])
    page = page_at(browser, f"/runs/{run.pk}/log/search/?q=")
    assert found_lines(page)[1:] == ["a", "b"]
    assert "are marked" not in page


def test_the_search_of_a_failed_runs_log_shows_the_error_which_no_line_has(
    browser: Client, talker: Asset
) -> None:
    run = printed(failed_run(talker, error="KeyError: 'user_id'"), ["batch 222 ok\n"])
    page = page_at(browser, f"/runs/{run.pk}/log/search/?q=user_id")
    assert "No matching line" in page
    assert "KeyError: &#x27;user_id&#x27;" in page
    assert f'<a href="/runs/{run.pk}/">Open run</a>' in page


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
        page = page_at(browser, f"{address}{query}&around=0")
        assert found_lines(page)[1:] == lines, query


def test_a_masked_secret_is_not_found(browser: Client, talker: Asset) -> None:
    run = printed(failed_run(talker), ["login with password=hunter2 works\n"])
    address = f"/runs/{run.pk}/log/search/"
    assert "hunter2" not in page_at(browser, f"{address}?q=login")
    nothing = compact(page_at(browser, f"{address}?q=hunter"))
    assert "No matching line. Change the search, or<a href=" in nothing


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
    assert "400 matching lines" in page
    earlier = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
    assert earlier
    rest = page_at(browser, f"/runs/{run.pk}/log/search/{earlier[1].replace('&amp;', '&')}")
    assert "line 1" in rest


def test_the_error_comes_first_and_the_log_before_details_attempts_and_partitions(
    browser: Client, talker: Asset
) -> None:
    run = printed(failed_run(talker, error="ValueError: no rows"), ["hello\n"])
    page = page_at(browser, f"/runs/{run.pk}/").split('id="main"')[1]
    places = [page.index(text) for text in ("ValueError: no rows", ">Log<", "Triggered by")]
    places += [page.index(">Attempts<"), page.index(">Partitions</h2>")]
    assert places == sorted(places)


def test_a_poll_brings_the_details_below_the_log_too(browser: Client, talker: Asset) -> None:
    run = recorded_run(talker, RunState.RUNNING, started_at=timezone.now())
    polled = browser.get(f"/runs/{run.pk}/status/").content.decode()
    assert re.search(r'id="facts"[^>]* hx-swap-oob="true"', polled)
    assert 'hx-swap-oob="true"' not in page_at(browser, f"/runs/{run.pk}/")


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
