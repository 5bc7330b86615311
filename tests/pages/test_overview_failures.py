"""Failures of the overview: the names of partitions, backfills and buttons."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import AssetPartition, Run, ScheduleTruncation
from backfills_app.models import Backfill
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset
from tests.pages.backfill_records import written_backfill
from tests.pages.markup import page_at, words_of
from tests.pages.run_records import failed_partition, repeat_run
from tests.query_plans import rows_read
from tests.scheduling.scheduled_assets import at, cron, scheduled

pytestmark = pytest.mark.django_db


def words(browser: Client, address: str = "") -> str:
    """Return the words of a page: of the overview if no address is given."""
    return words_of(page_at(browser, f"/{address}"))


def test_failed_partitions_have_the_labels_of_other_pages(browser: Client) -> None:
    delays = asset("daily_delays", DAY_BY_AIRPORT)
    failed_partition(delays, "2013-01-17|JFK")
    assert "2013-01-17 | JFK" in words(browser)
    failed_partition(delays, "2013-01-19|EWR")
    shown = words(browser)
    assert "2 failed partitions within 2013-01-17 | JFK \N{EN DASH} 2013-01-19 | EWR" in shown
    assert "|JFK" not in shown


def test_partitions_that_were_not_queued_have_the_labels_of_other_pages(browser: Client) -> None:
    delays = scheduled("daily_delays", cron("@daily"), DAY_BY_AIRPORT, since=at(2013, 1, 1))
    ScheduleTruncation.objects.create(
        asset=delays, at=timezone.now(), count=7, queued=3,
        first="2013-01-17|JFK", last="2013-01-19|EWR",
    )  # fmt: skip
    span = "( 2013-01-17 | JFK \N{EN DASH} 2013-01-19 | EWR )"
    assert f"{span}: limit" in words(browser)
    assert f"7 not examined {span};" in words(browser, "assets/daily_delays/?tab=schedule")


def test_buttons_name_the_number_of_runs_that_the_next_page_retries(browser: Client) -> None:
    delays = asset("daily_delays", DAY_BY_AIRPORT)
    # Two partitions of one run: a button counts runs.
    large_run = failed_partition(delays, "2013-01-17|JFK", error="line 1 is cut")
    beside = failed_partition(delays, "2013-01-18|JFK", error="line 1 is cut")
    AssetPartition.objects.filter(last_run=beside).update(last_run=large_run)
    beside.partitions.all().delete()
    beside.delete()
    failed_partition(delays, "2013-01-19|JFK", error="line 2 is cut")
    failed_partition(delays, "2013-01-20|JFK", error="no rows")
    page = page_at(browser, "/")
    pattern = r'href="(/runs/retry/[^"]*)"[^>]*>\s*<svg.*?</svg>([^<]*)<'
    buttons = {" ".join(text.split()): url for url, text in re.findall(pattern, page, re.DOTALL)}
    assert set(buttons) == {"Retry all 3 failed runs…", "Retry 2 runs…", "Retry run…"}
    for text, number in (("all 3 failed runs", "3 runs"), ("2 runs", "2 runs"), ("run", "1 run")):
        question = page_at(browser, unescape(buttons[f"Retry {text}…"]))
        assert f"Retry {number}?" in question, text
        assert re.search(r'href="/\?span=\w+">Back</a>', question)


def named_backfill(user: User, name: str) -> Backfill:
    """Create a backfill of January with a name."""
    backfill = written_backfill(user)
    Backfill.objects.filter(pk=backfill.pk).update(name=name)
    return backfill


def failed_in(backfill: Backfill, *days: int, error: str = "no rows") -> None:
    """Record failed runs of a backfill, one for each day of January."""
    for day in days:
        run = failed_partition(backfill.asset, f"2013-01-{day:02}", error=error)
        Run.objects.filter(pk=run.pk).update(group=backfill.group)


def test_failed_runs_lead_to_the_backfills_with_the_most_of_them(
    browser: Client, vera: User
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    failed_partition(flights, "2013-01-31")
    assert "of backfill" not in words(browser)
    repairs = [named_backfill(vera, f"repair_{number}") for number in range(4)]
    failed_in(repairs[0], 1, 2, 3)
    failed_in(repairs[1], 4)
    shown = words(browser)
    assert "5 failed runs of raw_flights" in shown
    assert "3 runs of backfill repair_0 , 1 run of backfill repair_1 5 failed partitions" in shown
    failed_in(repairs[2], 5)
    failed_in(repairs[3], 6, 7)
    shown = words(browser)
    assert "3 runs of backfill repair_0 , 2 runs of backfill repair_3 and 2 more backfills" in shown
    page = page_at(browser, "/")
    for repair in (repairs[0], repairs[3]):
        assert f'<a href="/backfills/{repair.pk}/">repair_<wbr>' in page


def test_a_failed_run_of_a_backfill_leads_there(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    rates = asset("rates", None)
    for name in ("first", "second"):
        run = failed_partition(rates, "", ago=timedelta(minutes=5))
        backfill = named_backfill(vera, name)
        Run.objects.filter(pk=run.pk).update(group=backfill.group)
        opening = "Run" if name == "first" else "Latest run"
        assert f"{opening} of backfill {name}" in words(browser)


def test_the_backfills_of_all_groups_are_read_at_once(browser: Client, vera: User) -> None:
    def statements() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            page_at(browser, "/")
        return [query["sql"] for query in captured]

    asset("raw_flights", DAILY_2013)
    repair = written_backfill(vera)
    failed_in(repair, 1)
    before = statements()
    for day in range(2, 9):
        failed_in(written_backfill(vera), day, error=f"no {'abcdefghi'[day]}")
    repeat_run(Run.objects.latest("pk"), 300)
    after = statements()
    assert len(after) == len(before)
    (statement,) = [
        text for text in after if '"backfills_app_backfill"' in text and '_run"."id" IN' in text
    ]
    # Eight runs, their groups and their backfills.
    assert rows_read(statement) <= 24
