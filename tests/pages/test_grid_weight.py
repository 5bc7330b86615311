"""The weight of pages of the grid on the wire, and their number of statements, at any zoom."""

from datetime import date

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.grids import MOST_BYTES
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import asset
from tests.partition_records import record

pytestmark = pytest.mark.django_db
SHOPS = PartitionBySequence([f"shop {number} of a chain with a long name" for number in range(60)])


@pytest.mark.parametrize("zoom", ["day", "month", "year", "all"])
@pytest.mark.parametrize("cadence", ["* * * * *", "@hourly", "@daily"])
@pytest.mark.parametrize("segmented", [False, True])
def test_a_page_of_the_grid_is_light_at_any_zoom(
    browser: Client, cadence: str, zoom: str, segmented: bool
) -> None:
    time = PartitionByInterval(cadence, start=date(2020, 1, 1))
    asset("events", PartitionByProduct({"at": time, "shop": SHOPS}) if segmented else time)
    address = f"/assets/events/?zoom={zoom}&at=2024-05-06"
    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(address, headers={"accept-encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert len(answer.content) <= MOST_BYTES
    assert len(queries) <= 25


def test_answers_of_the_api_keep_their_form(browser: Client) -> None:
    record(asset("events", PartitionByInterval("@daily", start=date(2024, 1, 1))), "2024-01")
    answer = browser.get("/api/v1/assets/events/partitions/", headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    assert not answer.has_header("Content-Encoding")
