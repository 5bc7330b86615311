"""Failures of the overview: the names of partitions, backfills and buttons."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from assets_app.models import ScheduleTruncation
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
