"""Labels that nothing cuts; `test_axe.py` looks at the widths of all pages."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page

from tests.factories import DAILY_2013, asset
from tests.pages.run_records import failed_partition

# Texts that are wider than their element, or that reach into the next element.
_CUT_OR_OVERLAPPING = """labels => labels.filter((label, at) => {
    const next = labels[at + 1]?.getBoundingClientRect().left ?? innerWidth;
    return label.scrollWidth > label.clientWidth || label.getBoundingClientRect().right > next;
}).map((label) => label.textContent.trim())"""


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
