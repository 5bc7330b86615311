"""The labels below the chart of runs of the overview."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page

from slicewise_server.home.run_chart import SPANS, run_chart
from tests.factories import DAILY_2013, asset
from tests.pages.run_records import failed_partition

pytestmark = pytest.mark.django_db
# Texts that are wider than their element, or that reach into the next element.
_CUT_OR_OVERLAPPING = """labels => labels.filter((label, at) => {
    const next = labels[at + 1]?.getBoundingClientRect().left ?? innerWidth;
    return label.scrollWidth > label.clientWidth || label.getBoundingClientRect().right > next;
}).map((label) => label.textContent.trim())"""


@pytest.mark.parametrize("hour", [0, 5, 11, 12, 23])
def test_each_day_has_its_label_at_the_column_in_which_it_begins(hour: int) -> None:
    now = datetime(2026, 11, 26, hour, 28, tzinfo=UTC)
    starts = [column.start for column in run_chart(SPANS["7d"], now).columns if column.label_form]
    today = datetime(2026, 11, 26, tzinfo=UTC)
    assert starts[-7:] == [today - timedelta(days=days) for days in range(6, -1, -1)]
    assert all(start.hour == 0 for start in starts)


def test_the_chart_of_a_day_has_a_label_for_every_six_columns() -> None:
    columns = run_chart(SPANS["24h"], datetime(2026, 11, 26, 11, 28, tzinfo=UTC)).columns
    labelled = [index for index, column in enumerate(columns) if column.label_form]
    assert labelled == [0, 6, 12, 18]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("span", ["24h", "7d"])
def test_no_label_below_the_chart_of_runs_is_cut_on_a_phone(page: Page, span: str) -> None:
    flights = asset("raw_flights", DAILY_2013)
    for hours in range(20):
        failed_partition(flights, f"2013-12-{hours + 1:02}", ago=timedelta(hours=hours))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/?span={span}")
    labels = page.locator(".run-chart small:visible")
    assert labels.count() >= 4
    assert labels.evaluate_all(_CUT_OR_OVERLAPPING) == []
