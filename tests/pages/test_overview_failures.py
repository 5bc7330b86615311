"""Failures of the overview: the names of partitions, backfills and buttons."""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from assets_app.models import AssetPartition, ScheduleTruncation
from tests.factories import DAY_BY_AIRPORT, asset
from tests.pages.markup import page_at
from tests.pages.run_records import failed_partition
from tests.scheduling.scheduled_assets import at, cron, scheduled

pytestmark = pytest.mark.django_db


def words(browser: Client, address: str = "") -> str:
    """Return the words of a page: of the overview if no address is given."""
    return " ".join(re.sub("<[^>]*>", " ", page_at(browser, f"/{address}")).split())


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
