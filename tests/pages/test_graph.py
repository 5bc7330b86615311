"""The page of the asset graph: the table for everybody, the canvas for scripts, the address."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from assets_app.models import Asset, AssetDependency
from slicewise import Offset
from tests.factories import DAILY_2013, asset, external
from tests.pages.markup import compact, page_at
from tests.partition_records import record

pytestmark = pytest.mark.django_db
GRAPH = "/assets/graph/"


def edge(upstream: Asset, downstream: Asset, **fields: object) -> AssetDependency:
    """Store an edge; the downstream asset reads the upstream asset unless fields say otherwise."""
    return AssetDependency.objects.create(
        upstream=upstream, downstream=downstream, **{"inlet": True, **fields}
    )


@pytest.fixture
def assets(db: None) -> list[Asset]:
    """Create raw, clean and report, each read by the next one, and an asset by itself."""
    assets = [
        external("raw", DAILY_2013, group="source"),
        asset("clean", DAILY_2013, group="mart"),
        asset("report", group="mart"),
        asset("alone"),
    ]
    edge(assets[0], assets[1], scheduling=True, mapping=Offset(-1).to_json())
    edge(assets[1], assets[2], inlet=False, scheduling=True)
    return assets


def row_of(text: str, name: str) -> str:
    """Return the row of an asset in the table."""
    rows: list[str] = re.findall(r"<tr>.*?</tr>", compact(text), re.DOTALL)
    return next(row for row in rows if f'class="fw-bold" href="/assets/{name}/"' in row)


def test_the_table_has_states_and_edges_with_their_mapping(
    assets: list[Asset], browser: Client
) -> None:
    record(assets[1], "2013-01", lambda n: "failed" if n < 2 else "materialized")
    row = row_of(page_at(browser, GRAPH), "clean")
    assert "2 failed" in row
    assert "334 missing" in row
    assert (
        '<a href="/assets/raw/">raw</a><span class="text-secondary">1 window earlier, trigger'
        in row
    )
    assert '<a href="/assets/report/">report</a><span class="text-secondary">trigger only' in row


def test_the_table_is_narrowed_by_search_and_by_direction(
    assets: list[Asset], browser: Client
) -> None:
    def names(query: str) -> list[str]:
        return re.findall(r'class="fw-bold" href="/assets/(\w+)/"', page_at(browser, GRAPH + query))

    assert names("") == ["alone", "clean", "raw", "report"]
    assert names("?q=MART") == ["clean", "report"]
    assert names("?around=clean") == ["clean", "raw", "report"]
    assert names("?around=clean&direction=upstream") == ["clean", "raw"]
    assert names("?around=clean&direction=downstream") == ["clean", "report"]
    assert names("?around=nothing") == ["alone", "clean", "raw", "report"]
    assert "No matching assets" in page_at(browser, f"{GRAPH}?q=zzz")


def test_the_table_has_pages(browser: Client) -> None:
    for number in range(30):
        asset(f"asset_{number:02}")
    first = page_at(browser, GRAPH)
    assert "asset_24" in first
    assert "asset_25" not in first
    assert "asset_25" in page_at(browser, f"{GRAPH}?page=2")


def test_an_empty_graph_says_what_to_do(browser: Client) -> None:
    text = page_at(browser, GRAPH)
    assert "No assets yet" in text
    assert "data-graph" not in text


def test_list_and_graph_lead_to_each_other(assets: list[Asset], browser: Client) -> None:
    assert 'href="/assets/graph/all/"' in page_at(browser, "/assets/")
    graph = compact(page_at(browser, "/assets/graph/all/"))
    assert 'aria-current="page" href="/assets/graph/all/"' in graph
    # The navigation marks the page as one of assets.
    assert 'href="/assets/" aria-current="page"' in graph


def test_an_asset_of_the_name_graph_keeps_its_page(assets: list[Asset], browser: Client) -> None:
    assert "Asset graph" in page_at(browser, GRAPH)
    named = asset("graph", DAILY_2013, description="Edges of the road network.")
    assert "Edges of the road network." in page_at(browser, GRAPH)
    assert "Edges of the road network." in page_at(browser, f"{GRAPH}?tab=definition")
    assert "Impact of graph" in page_at(browser, f"{GRAPH}impact/")
    assert "Asset graph" in page_at(browser, f"{GRAPH}all/")
    named.active = False
    named.save()
    # The history of a removed asset stays reachable.
    assert "Edges of the road network." in page_at(browser, GRAPH)


def test_assets_of_the_names_all_and_impact_keep_their_pages(browser: Client) -> None:
    for name in ("all", "impact"):
        asset(name, description=f"This is {name}.")
        assert f"This is {name}." in page_at(browser, f"/assets/{name}/")


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(
    assets: list[Asset], browser: Client
) -> None:
    for address in (GRAPH, "/assets/clean/?tab=neighbours", "/assets/clean/impact/"):
        text = page_at(browser, address)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


def test_scripts_read_the_neighbourhood_on_the_page_of_an_asset(
    assets: list[Asset], browser: Client
) -> None:
    text = page_at(browser, "/assets/clean/?tab=neighbours")
    assert 'data-graph="/api/v1/asset-graph/?asset=clean&amp;depth=2"' in text
    assert "input (1 window earlier)" in compact(text)
    assert "data-graph" not in page_at(browser, "/assets/alone/?tab=neighbours")


def test_names_with_special_characters_are_addressed(browser: Client) -> None:
    first, second = asset("a&b c?", DAILY_2013), asset("d+e#é", DAILY_2013)
    edge(first, second)
    text = page_at(browser, "/assets/a&b%20c%3F/?tab=neighbours")
    assert "?asset=a%26b+c%3F&amp;depth=2" in text
    assert "?around=a%26b%20c%3F" in text
    panel = page_at(browser, "/assets/a&b%20c%3F/impact/?fragment=panel")
    assert "?asset=a%26b%20c%3F&amp;downstream=all" in panel


def test_the_number_of_statements_does_not_grow_with_the_table(
    assets: list[Asset], browser: Client
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            page_at(browser, GRAPH)
        return len(queries)

    statements()
    before = statements()
    for number in range(15):
        edge(assets[0], asset(f"more_{number}", DAILY_2013))
    assert statements() == before
    assert before <= 17


def test_each_script_of_the_graph_exists(assets: list[Asset], browser: Client) -> None:
    text = page_at(browser, GRAPH)
    for name, kind in (("page", "js"), ("layout_worker", "js"), ("graph", "css")):
        assert re.search(rf'"/static/graph/{name}\.(\w+\.)?{kind}"', text)
        assert finders.find(f"graph/{name}.{kind}")
