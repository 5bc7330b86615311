"""The help page, whose sections the pages name beside the things that the sections explain."""

import re

import pytest
from django.test import Client

from backfills_app.models.states import BackfillState
from tests.factories import DAILY_2013, asset, person
from tests.pages.backfill_records import written_backfill
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
    backfill = written_backfill(person("ada", is_superuser=True))
    links = {
        link
        for address in (
            "/assets/raw_flights/", "/assets/raw_flights/?tab=validations",
            "/assets/daily/?tab=schedule", "/backfills/new/?asset=raw_flights", f"/runs/{run.pk}/",
            f"/backfills/{backfill.pk}/",
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
        ("backfill-states", "states of a backfill"),
    }
    page = page_at(browser, "/help/partitions/")
    assert {section for section, _ in links} <= set(re.findall(r'<section [^>]*id="(.*?)"', page))


def test_the_help_page_explains_each_state_of_a_backfill(browser: Client) -> None:
    page = page_at(browser, "/help/partitions/")
    section = page.split('id="backfill-states"')[1].split("</section>")[0]
    labels = re.findall(r"</svg>([^<]+)</span></td>", compact(section))
    assert labels == list(BackfillState.labels)


def test_no_key_of_the_selection_syntax_is_broken(browser: Client) -> None:
    """Each span of an example stays in one line (static/slicewise.css)."""
    page = page_at(browser, "/help/partitions/")
    section = compact(page.split('id="selections"')[1].split("</section>")[0])
    for example in re.findall(r'<td class="key">(.*?)</td>', section):
        assert re.sub(r"<span>\S+?</span>", "", example) == ""
