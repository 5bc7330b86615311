"""The help page, whose sections the pages name beside the things that the sections explain."""

import re

import pytest
from django.test import Client

from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run
from tests.scheduling.scheduled_assets import DAILY, at, cron, scheduled

pytestmark = pytest.mark.django_db

_LINK = re.compile(r'href="/help/partitions/#([a-z-]+)"(?: aria-label="Help: ([^"]*)")?')


def test_each_help_link_opens_a_section_that_the_help_page_has(browser: Client) -> None:
    checked = [{"name": "enough", "description": "at least 10 rows", "severity": "error"}]
    flights = asset("raw_flights", DAILY_2013, outlet_validations=checked)
    scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    run = failed_run(flights)
    links = {
        link
        for address in (
            "/assets/raw_flights/", "/assets/raw_flights/?tab=validations",
            "/assets/daily/?tab=schedule", "/backfills/new/?asset=raw_flights", f"/runs/{run.pk}/",
        )
        for link in _LINK.findall(compact(page_at(browser, address)))
    }  # fmt: skip
    assert links == {
        ("selections", ""),
        ("states", "states of a partition"),
        ("validations", "validations"),
        ("schedules", "schedules and ticks"),
        ("backfill-options", "options of a backfill"),
        ("run-states", "states of a run"),
    }
    page = page_at(browser, "/help/partitions/")
    assert {section for section, _ in links} <= set(re.findall(r'<section [^>]*id="(.*?)"', page))
