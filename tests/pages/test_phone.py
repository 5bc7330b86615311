"""Pages on a phone: the first screens have the actions and the failures, and wide grids say so."""

from collections.abc import Iterator
from datetime import date
from itertools import pairwise

import pytest
from django.db import transaction
from django.test import Client
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from assets_app.models import AssetDependency
from slicewise import PartitionByInterval
from tests.factories import DAILY_2013, asset
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.real_browser import opened_page
from tests.pages.run_records import failed_partition
from tests.partition_records import record

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PHONE, WIDE = 390, 1400
HOURLY = PartitionByInterval("@hourly", start=date(2013, 1, 1), end=date(2014, 1, 1))
# The lines of an element's text, as the browser breaks them.
_LINES = """element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), lines = [];
    let height = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (let at = 0; at < node.data.length; at += 1) {
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            const { bottom } = range.getBoundingClientRect();
            if (bottom !== height) lines.push("");
            height = bottom;
            lines[lines.length - 1] += node.data[at];
        }
    }
    return lines;
}"""
_FADE_WIDTH = "row => parseFloat(getComputedStyle(row, '::after').width) || 0"


@pytest.fixture
def phone(live_server: LiveServer, browser: Client) -> Iterator[Page]:
    """Open Vera's browser on a phone."""
    with opened_page(live_server.url, browser, width=PHONE) as opened:
        yield opened


def top_of(element: Locator) -> float:
    """Return the distance of an element from the top of the page."""
    box = element.bounding_box()
    assert box
    return box["y"]


def test_a_failed_run_has_its_action_beside_the_error(phone: Page) -> None:
    run = failed_partition(asset("flights", DAILY_2013), "2013-01-05", error="no rows\n" * 40)
    phone.goto(f"/runs/{run.pk}/")
    retry = phone.get_by_role("link", name="Retry…")
    assert retry.count() == 1
    assert top_of(retry) < top_of(phone.locator(".text-danger").first)
    expect(retry).to_be_in_viewport()


def test_failures_come_before_the_chart_on_a_phone_only(phone: Page) -> None:
    failed_partition(asset("flights", DAILY_2013), "2013-01-05")
    phone.goto("/")
    failures, chart = phone.locator("#failures-title"), phone.locator("#chart-title")
    assert top_of(failures) < top_of(chart)
    phone.set_viewport_size({"width": WIDE, "height": 900})
    assert top_of(chart) < top_of(failures)


@pytest.mark.parametrize("zoom", ["day", "month"])
def test_a_grid_that_is_wider_than_the_phone_says_so(phone: Page, zoom: str) -> None:
    hours = asset("hours", HOURLY)
    record(hours, "2013-01-01..2013-01-02")
    phone.goto(f"/assets/hours/?zoom={zoom}&at=2013-01-02")
    hint, row = phone.locator(".scroll-hint"), phone.locator(".partition-grid .scroll").first
    is_wider = "row => row.scrollWidth > row.clientWidth + 1"
    assert row.evaluate(is_wider)
    assert hint.is_visible()
    assert row.evaluate(_FADE_WIDTH) > 0
    # At the end of the row the fade covers no cell.
    row.evaluate("row => row.scrollLeft = row.scrollWidth")
    assert row.evaluate(
        """row => {
            const cells = row.querySelector('.cells').getBoundingClientRect();
            const fade = parseFloat(getComputedStyle(row, '::after').width);
            return cells.right <= row.getBoundingClientRect().right - fade + 1;
        }"""
    )
    phone.set_viewport_size({"width": WIDE, "height": 900})
    assert not row.evaluate(is_wider)
    assert hint.is_hidden()


def test_the_form_of_a_selection_is_folded_on_a_phone_while_it_is_empty(phone: Page) -> None:
    record(asset("daily", DAILY_2013), "2013-01-01..2013-01-02")
    phone.goto("/assets/daily/")
    field, fold = (
        phone.get_by_label("Selected partitions"),
        phone.get_by_text("Selection", exact=True),
    )
    expect(field).to_be_hidden()
    folded_top = top_of(phone.locator("#grid"))
    fold.click()
    expect(field).to_be_visible()
    assert top_of(phone.locator("#grid")) > folded_top + 150
    phone.goto("/assets/daily/?selection=2013-01-02")
    expect(field).to_be_visible()
    phone.goto("/assets/daily/")
    phone.locator(".cells thead th").first.click()
    expect(field).to_be_visible()
    phone.goto("/assets/daily/")
    expect(field).to_be_hidden()
    phone.set_viewport_size({"width": WIDE, "height": 900})
    expect(field).to_be_visible()
    expect(fold).to_be_hidden()


def test_the_form_of_a_selection_is_open_without_script(
    live_server: LiveServer, browser: Client
) -> None:
    asset("daily", DAILY_2013)
    with opened_page(live_server.url, browser, width=PHONE, script=False) as page:
        page.goto("/assets/daily/")
        expect(page.get_by_label("Selected partitions")).to_be_visible()


def test_actions_of_a_backfill_have_words_and_room_for_a_finger(phone: Page, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    january = written_backfill(vera)
    with transaction.atomic():
        runs_of(january, "failed", 1)
    phone.goto("/backfills/")
    actions = phone.locator(f"#backfill-{january.pk} .row-actions > *")
    assert actions.all_inner_texts() == [
        "Pause", "Retry failed…", "Edit…", "Clone…", "Cancel…",
    ]  # fmt: skip
    boxes = [action.bounding_box() for action in actions.all()]
    assert all(box and box["height"] >= 40 for box in boxes)
    for name in ("Pause", "Retry failed partitions of", "Edit", "Clone", "Cancel"):
        expect(phone.get_by_label(f"{name} {january.name}", exact=True)).to_be_visible()
    phone.set_viewport_size({"width": WIDE, "height": 900})
    assert not any(text.strip() for text in actions.all_inner_texts())


def test_a_grid_whose_cells_are_far_right_begins_at_the_newest(phone: Page, vera: User) -> None:
    autumn = PartitionByInterval("@hourly", start=date(2013, 10, 1), end=date(2014, 1, 1))
    record(asset("leaves", autumn), "2013-10-01..2013-10-02")
    phone.goto("/assets/leaves/?zoom=all")
    assert phone.locator(".partition-grid .scroll").evaluate(
        """strip => {
            const last = [...strip.querySelectorAll("td > a")].at(-1).getBoundingClientRect();
            return last.right <= strip.getBoundingClientRect().right;
        }"""
    )
    assert phone.evaluate("scrollY") == 0
    # A fragment that is polled stays where the reader has scrolled to.
    backfill = written_backfill(vera, "leaves", "2013-10-01", "2013-12-30")
    phone.goto(f"/backfills/{backfill.pk}/?zoom=all")
    strip = phone.locator(".partition-grid .scroll")
    assert strip.evaluate("strip => strip.scrollLeft") > 50
    strip.evaluate("strip => { strip.scrollLeft = 20; strip.dataset.old = ''; }")
    phone.evaluate(
        """() => {
            const cells = document.querySelector('#cells');
            const address = cells.getAttribute('hx-get').replace(/&version=[^&]*/, '');
            htmx.ajax('GET', address, {source: cells, target: cells, swap: 'outerHTML'});
        }"""
    )
    expect(phone.locator(".partition-grid .scroll:not([data-old])")).to_be_visible()
    phone.wait_for_timeout(200)
    assert strip.evaluate("strip => strip.scrollLeft") == 20


def test_the_first_screen_of_a_list_has_its_first_row(phone: Page, vera: User) -> None:
    """Two filters share a row, and a name breaks after an underscore."""
    asset("raw_flights_by_origin", DAILY_2013)
    january = written_backfill(vera, "raw_flights_by_origin")
    phone.goto("/backfills/")
    name = phone.get_by_role("link", name=january.name, exact=True)
    expect(name).to_be_in_viewport()
    for page in ("/backfills/", f"/backfills/{january.pk}/"):
        phone.goto(page)
        lines = phone.locator("main").get_by_text(january.name, exact=True).evaluate(_LINES)
        assert "".join(lines) == january.name
        assert all(line.endswith("_") for line in lines[:-1])


def test_the_neighbourhood_of_an_asset_shows_the_asset_first(phone: Page) -> None:
    assets = [asset(name, DAILY_2013) for name in "abcde"]
    for upstream, downstream in pairwise(assets):
        AssetDependency.objects.create(upstream=upstream, downstream=downstream, inlet=True)
    phone.goto("/assets/c/?tab=neighbours")
    node = phone.locator("[data-node]").filter(has=phone.locator("title", has_text="c"))
    expect(node).to_have_count(1)
    expect(node).to_be_visible()
    box = node.bounding_box()
    assert box
    assert abs(box["x"] + box["width"] / 2 - PHONE / 2) < 20
    # A chain leads downwards, so that all of its nodes are on the screen, and legible.
    expect(phone.locator("[data-node]")).to_have_count(5)
    for shown in phone.locator("[data-node]").all():
        box = shown.bounding_box()
        assert box
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE
        assert box["width"] >= 0.75 * 230
    expect(phone.get_by_text("drag to see the rest")).to_have_count(0)
    node.focus()
    phone.keyboard.press("ArrowDown")
    focused = phone.locator("[data-node]:focus title")
    expect(focused).to_contain_text("d;")


def test_a_part_of_a_graph_says_that_there_is_more(phone: Page) -> None:
    middle = asset("middle", DAILY_2013)
    for number in range(9):
        upstream = asset(f"upstream{number}", DAILY_2013)
        AssetDependency.objects.create(upstream=upstream, downstream=middle, inlet=True)
    phone.goto("/assets/middle/?tab=neighbours")
    expect(phone.get_by_text("10 assets, drag to see the rest")).to_be_visible()
