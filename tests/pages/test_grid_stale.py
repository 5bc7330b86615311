"""Stale partitions on the grid at every zoom, as many as the head of the page counts."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.models import Asset, Gateway
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.execution.conftest import make_gateway
from tests.factories import asset
from tests.pages.markup import cell, compact, page_at, selected
from tests.scheduling.scheduled_assets import HOURLY, at, by, scheduled, write

pytestmark = pytest.mark.django_db
SHOPS = PartitionBySequence(["mitte", "wedding"])
FIRST_HOURS = "2024-07-01T00:00Z..2024-07-01T03:00Z"
STALE_HOURS = "2024-07-01T01:00Z..2024-07-01T02:00Z"


@pytest.fixture
def gateway(db: None) -> Gateway:
    """Create a gateway."""
    return make_gateway("scheduled")


def pair(strategy: str, by_shop: bool = False) -> tuple[Asset, Asset]:
    """Create hours, and a copy of the hours."""
    definition = PartitionByProduct({"hour": HOURLY, "shop": SHOPS}) if by_shop else HOURLY
    source = asset("source", definition)
    return source, scheduled(
        "copy", by("source"), definition, since=at(2024, 1, 1), upstream={"source": None},
        strategy=strategy,
    )  # fmt: skip


def stale_hours(user: User, gateway: Gateway, strategy: str) -> tuple[Asset, Asset]:
    """Materialize four hours of both, and then two hours of the source again."""
    source, copied = pair(strategy)
    write(source, FIRST_HOURS, gateway, user)
    write(copied, FIRST_HOURS, gateway, user)
    write(source, STALE_HOURS, gateway, user)
    return source, copied


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_stale_partitions_are_counted_marked_and_selected_at_every_zoom(
    browser: Client, vera: User, gateway: Gateway, strategy: str
) -> None:
    source, _ = stale_hours(vera, gateway, strategy)
    page = "/assets/copy/?zoom={}&at=2024-07-01"
    text = page_at(browser, page.format("year"))
    name = "2024-07-01: 2 materialized, 2 stale, 20 missing"
    assert cell(text, "2024-07-01") == ("mixed has-stale", name)
    assert ", 2 stale, " in cell(page_at(browser, page.format("all")), "July 2024")[1]
    for zoom in ("day", "month", "year", "all"):
        text = compact(page_at(browser, page.format(zoom) + "&select=stale"))
        assert "2 stale</a>" in text
        assert "Select stale 2</a>" in text
        assert selected(text) == STALE_HOURS
    write(source, FIRST_HOURS, gateway, vera)
    text = page_at(browser, page.format("year"))
    assert cell(text, "2024-07-01")[1] == "2024-07-01: 4 stale, 20 missing"


def test_the_count_of_the_catalogue_leads_to_the_stale_partitions(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    stale_hours(vera, gateway, "range")
    for address, look in (
        ("/assets/", "state state-warn"),
        ("/assets/copy/?tab=runs", "state-warn"),
    ):
        link = rf'<a\s+class="{look}"\s+href="/assets/copy/\?select=stale"'
        assert re.search(link, page_at(browser, address))
    text = page_at(browser, "/assets/copy/?select=stale")
    assert selected(text) == STALE_HOURS
    assert "July 2024" in text


@pytest.mark.parametrize(("strategy", "pick"), [("partition", "2"), ("range", "1+")])
def test_of_very_many_partitions_the_page_tells_that_more_are_stale(
    browser: Client,
    vera: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    pick: str,
) -> None:
    """The mappings decide of the first ones alone, and no selection is silently a part."""
    stale_hours(vera, gateway, strategy)
    monkeypatch.setattr("assets_app.queries.grid_stale.MOST_EXAMINED", 2)
    monkeypatch.setattr("assets_app.queries.grid_selection.MOST_SELECTED", 1)
    text = compact(page_at(browser, "/assets/copy/?zoom=year&at=2024-07-01&select=stale"))
    assert f"Select stale {pick}</a>" in text
    assert "More than 1 partitions: zoom in" in text
    assert selected(text) == ""


def test_only_partitions_of_the_segment_and_of_the_definition_count(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    source, copied = pair("partition", by_shop=True)
    hours = "hour=2024-07-01T00:00Z..2024-07-01T01:00Z shop=mitte"
    for written in (source, copied, source):
        write(written, hours, gateway, vera)
    text = page_at(browser, "/assets/copy/?zoom=year&at=2024-07-01")
    assert ": 2 stale, " in cell(text, "mitte, July 2024")[1]
    assert "stale" not in cell(text, "wedding, July 2024")[1]
    later = PartitionByInterval("@hourly", start="2024-07-01T01:00Z")
    definition = PartitionByProduct({"hour": later, "shop": SHOPS})
    copied.partition_definition = PartitionDefinition.of(definition.to_json())
    copied.save()
    text = page_at(browser, "/assets/copy/?zoom=year&at=2024-07-01")
    assert ", 1 stale" in cell(text, "mitte, July 2024")[1]
    assert "1 stale" in compact(text)


def test_a_page_costs_the_same_for_one_stale_partition_and_for_many(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    source, copied = pair("range")
    write(source, "2024-07-01..2024-07-02", gateway, vera)
    write(copied, "2024-07-01..2024-07-02", gateway, vera)
    counted = []
    for selection in ("2024-07-01T00:00Z", "2024-07-01T01:00Z..2024-07-02T20:00Z"):
        write(source, selection, gateway, vera)
        with CaptureQueriesContext(connection) as statements:
            assert " stale" in page_at(browser, "/assets/copy/?zoom=year&at=2024-07-01")
        counted.append(len(statements))
    assert counted[0] == counted[1] <= 25
