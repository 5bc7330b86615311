"""Days on which the clock changes, on the page of an asset with windows of an hour."""

from datetime import date

import pytest
from django.test import Client

from slicewise import PartitionByInterval
from tests.factories import asset

pytestmark = pytest.mark.django_db
HOURLY = PartitionByInterval(
    "@hourly", timezone="America/New_York", start=date(2024, 1, 1), end=date(2025, 1, 1)
)


@pytest.mark.parametrize(("month", "absent"), [("2024-03", 1), ("2024-11", 29), ("2024-06", 0)])
def test_hours_that_the_clock_does_not_show_are_named_and_explained(
    browser: Client, month: str, absent: int
) -> None:
    asset("hourly", HOURLY)
    page = browser.get(f"/assets/hourly/?zoom=month&at={month}-01").content.decode()
    assert page.count('<td aria-label="no such hour">') == absent
    # The sign is the mark of failures.
    assert "\N{MULTIPLICATION SIGN}" not in page
    forward = "On 2024-03-10 clocks go forward: the day has no hour from 02:00."
    assert (forward in page) == (month == "2024-03")
    back = "1 (2nd): on 2024-11-03 clocks go back, and the hour from 01:00 comes again."
    assert (back in page) == (month == "2024-11")
    assert ('<th scope="col">1 (2nd)</th>' in page) == (month == "2024-11")
