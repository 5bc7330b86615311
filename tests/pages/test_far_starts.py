"""Pages of assets whose partitions start at the end of Python's calendar."""

import pytest
from django.test import Client

import slicewise
from accounts_app.models import User
from tests.factories import asset

pytestmark = pytest.mark.django_db
TABS = ("", "?tab=schedule", "?tab=runs", "?tab=definition", "?tab=lineage")
ADDRESSES = (
    *(f"/assets/late/{tab}" for tab in TABS),
    *(f"/assets/late/?zoom={zoom}" for zoom in ("day", "month", "year", "all")),
    "/assets/late/materialize/",
    "/assets/",
    "/",
    "/backfills/new/?asset=late",
    "/api/v1/assets/late/",
    "/api/v1/assets/late/partitions/",
)


@pytest.mark.parametrize("start", ["9999-12-31", "9999-12-01", "9999-01-01", "9998-12-31"])
@pytest.mark.parametrize("cadence", ["@hourly", "@daily", "@monthly", "@yearly"])
@pytest.mark.parametrize("timezone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_start_at_the_end_of_the_calendar_fails_no_page(
    client: Client, vera: User, cadence: str, start: str, timezone: str
) -> None:
    client.force_login(vera)
    asset("late", slicewise.PartitionByInterval(cadence, start=start, timezone=timezone))
    answers = {address: client.get(address).status_code for address in ADDRESSES}
    assert answers == dict.fromkeys(ADDRESSES, 200)
