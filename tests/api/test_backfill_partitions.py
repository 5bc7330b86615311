"""The list of a backfill's partitions: every partition once, in order, for the cost of a page."""

import random
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts_app.models import User
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.queries.partition_list import ListPosition, Narrowed, list_of_partitions
from slicewise_server.web.api.pages import encode_cursor
from tests.backfills.driven_backfills import ask
from tests.factories import DAILY_2013, asset
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db

STATES = ("waiting", "active", "succeeded", "failed", "canceled", "skipped")
REASONS = ("in_flight", "upstream_failed")


def add_partitions(asset_row: BackfillAsset, states: list[tuple[str, str]]) -> None:
    """Write a partition for each state and reason, and count the partitions."""
    BackfillPartition.objects.bulk_create(
        BackfillPartition(
            backfill_asset=asset_row, position=place, key=f"{place}", state=state,
            reason=reason,
        )
        for place, (state, reason) in enumerate(states)
    )  # fmt: skip
    counts = {name: sum(state == name for state, _ in states) for name in STATES}
    rows = BackfillAsset.objects.filter(pk=asset_row.pk)
    rows.update(total=len(states), expanded=len(states), **counts)


def days_of(olga: User) -> Backfill:
    """Create a backfill without any partition yet."""
    return ask(olga, "days", selection="2013-01-01")


def every(api: APIClient, address: str) -> list[dict[str, Any]]:
    """Follow the pages of a list to the end."""
    results: list[dict[str, Any]] = []
    following: str | None = address
    while following:
        page = api.get(following).json()
        results += page["results"]
        following = page["next"]
        assert not following or len(page["results"]) == 7
    return results


def test_pages_hold_each_narrowed_partition_once_and_in_order(api: APIClient, olga: User) -> None:
    asset("days", DAILY_2013)
    nights = asset("nights", DAILY_2013)
    backfill = days_of(olga)
    (first,) = backfill.assets.all()
    second = BackfillAsset.objects.create(
        backfill=backfill,
        asset=nights,
        producer_version=first.producer_version,
        position=1,
    )
    draw = random.Random(4)
    written: list[tuple[str, str, str, str]] = []
    # The second asset's rows come first, so that the order of rows is not the order of the list.
    for asset_row, name in ((second, "nights"), (first, "days")):
        states = [
            (state, draw.choice(REASONS) if state == "skipped" else "")
            for state in draw.choices(STATES, k=60)
        ]
        add_partitions(asset_row, states)
        keyed = [(name, f"{place}", *states[place]) for place in range(60)]
        written = keyed + written
    choices = product(
        ("", "days", "nights", "none"),
        ((), ("failed",), ("active", "skipped"), STATES),
        ((), ("in_flight",), REASONS),
    )
    for chosen_asset, states_asked, reasons_asked in choices:
        terms = [f"state={state}" for state in states_asked]
        terms += [f"reason={reason}" for reason in reasons_asked] + [f"asset={chosen_asset}"]
        listed = every(
            api, f"/api/v1/backfills/{backfill.pk}/partitions/?page_size=7&{'&'.join(terms)}"
        )
        assert [(row["asset"], row["key"], row["state"], row["reason"]) for row in listed] == [
            row
            for row in written
            if (not chosen_asset or row[0] == chosen_asset)
            and (not states_asked or row[2] in states_asked)
            and (not reasons_asked or row[3] in reasons_asked)
        ], terms


@pytest.mark.parametrize(
    "narrowed",
    [Narrowed(states=("failed",)), Narrowed(reasons=("in_flight",)), Narrowed(states=STATES)],
    ids=["failed", "in flight", "every state"],
)
def test_a_page_reads_no_other_partitions(olga: User, narrowed: Narrowed) -> None:
    asset("days", DAILY_2013)
    for backfill in (days_of(olga), days_of(olga)):
        (asset_row,) = backfill.assets.all()
        many = [("succeeded", "")] * 300 + [("skipped", "upstream_failed")] * 300
        add_partitions(asset_row, [*many, *[("failed", ""), ("skipped", "in_flight")] * 20])
    for last in (None, ListPosition(asset_row.pk, 610)):
        with CaptureQueriesContext(connection) as statements:
            found = list_of_partitions(backfill, narrowed, last, 10)
        assert len(found) == 10
        assert len(statements) == 2
        assert rows_read(statements[1]["sql"]) <= 10 * len(STATES)


def test_other_positions_are_refused(api: APIClient, olga: User) -> None:
    asset("days", DAILY_2013)
    other, backfill = days_of(olga), days_of(olga)
    (foreign,) = other.assets.all()
    (asset_row,) = backfill.assets.all()
    address = f"/api/v1/backfills/{backfill.pk}/partitions/?cursor="
    for position in (7, "a", [foreign.pk, 1], [asset_row.pk], ["a", 1], [asset_row.pk, 1, 1]):
        refused = api.get(address + encode_cursor(position))
        assert refused.status_code == 400, position
        assert "cursor" in refused.json()["errors"]
    answered = api.get(address + encode_cursor([asset_row.pk, 2**63 - 1]))
    assert answered.json() == {"next": None, "results": []}
