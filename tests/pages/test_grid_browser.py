"""Selection and keys of the grid, in a real browser: the text of the selection is the truth."""

import re
from collections.abc import Iterator
from datetime import date

import pytest
from django.test import Client
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from slicewise import PartitionByInterval
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset
from tests.pages.real_browser import opened_page
from tests.partition_records import record

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(live_server: LiveServer, browser: Client) -> Iterator[Page]:
    """Open Vera's browser, a real browser."""
    with opened_page(live_server.url, browser) as opened:
        yield opened


def cell(page: Page, key: str) -> Locator:
    """Find the cell of a partition by the beginning of its name."""
    return page.locator(f'.partition-grid a[aria-label^="{key}"]')


def drag(page: Page, first: str, last: str, *, adding: bool = False) -> None:
    """Drag from one cell to another."""
    if adding:
        page.keyboard.down("Control")
    cell(page, first).hover()
    page.mouse.down()
    cell(page, last).hover()
    page.mouse.up()
    if adding:
        page.keyboard.up("Control")


def _point(found: Locator) -> dict[str, float]:
    """Return the middle of a cell, as a point of a touch."""
    box = found.bounding_box()
    assert box
    return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}


def picked(page: Page) -> list[str]:
    """Return the names of the marked cells, without their states."""
    names = page.locator("a.selected").evaluate_all("all => all.map(a => a.ariaLabel)")
    return [str(name).split(":")[0] for name in names]


def test_rectangles_and_several_ranges_are_dragged_and_typed_text_is_marked(page: Page) -> None:
    asset("weather", DAY_BY_AIRPORT)
    page.goto("/assets/weather/")
    field = page.get_by_label("Selected partitions")
    drag(page, "2013-03-04|EWR", "2013-03-06|JFK")
    expect(field).to_have_value("date=2013-03-04..2013-03-06 airport=EWR,JFK")
    expect(page.locator("#selection-count")).to_have_text("6 partitions selected")
    # With Ctrl a further range is added, and a click takes one cell away.
    drag(page, "2013-05-01|LGA", "2013-05-02|LGA", adding=True)
    cell(page, "2013-03-05|JFK").click(modifiers=["Control"])
    expect(page.locator("#selection-count")).to_have_text("7 partitions selected")
    expect(field).to_have_value(
        "date=2013-03-04..2013-03-06 airport=EWR; date=2013-03-04,2013-03-06 airport=JFK;"
        " date=2013-05-01..2013-05-02 airport=LGA"
    )
    assert len(picked(page)) == 7
    # What is typed replaces what was marked: the old marks stayed.
    field.fill("date=2013-06-01..2013-06-03 airport=L*")
    expect(page.locator("#selection-count")).to_have_text("3 partitions selected")
    assert picked(page) == ["2013-06-01|LGA", "2013-06-02|LGA", "2013-06-03|LGA"]
    field.fill("date=2013-06-99")
    expect(page.locator("#selection-count")).to_contain_text("2013-06-99")
    assert picked(page) == []
    page.get_by_role("button", name="Clear").click()
    expect(field).to_have_value("")
    # The head of a row selects the row of its month.
    page.locator("section", has_text="March 2013").get_by_role("rowheader", name="JFK").click()
    expect(field).to_have_value("date=2013-03-01..2013-03-31 airport=JFK")


def test_the_cell_of_an_unpartitioned_asset_has_a_text_and_a_height(page: Page) -> None:
    asset("rates", None)
    page.goto("/assets/rates/")
    only_cell = page.locator(".partition-grid a")
    expect(only_cell).to_have_text("Unpartitioned")
    box = only_cell.bounding_box()
    assert box
    assert box["height"] >= 20


def test_a_drag_that_ends_beside_the_grid_is_written_once(page: Page) -> None:
    asset("daily", DAILY_2013)
    page.goto("/assets/daily/")
    field = page.get_by_label("Selected partitions")
    cell(page, "2013-01-08").hover()
    page.mouse.down()
    cell(page, "2013-01-09").hover()
    page.get_by_role("heading", name="2013", exact=True).hover()
    page.mouse.up()
    expect(field).to_have_value("2013-01-08..2013-01-09")
    field.fill("2013-06")
    page.get_by_text("Selection syntax").locator("..").click(position={"x": 2, "y": 2})
    expect(page.locator("#selection-count")).to_have_text("30 partitions selected")
    expect(field).to_have_value("2013-06")
    # The next click on a cell is a click again.
    cell(page, "2013-01-09").click()
    expect(page.get_by_role("dialog").get_by_role("heading", name="2013-01-09")).to_be_visible()


@pytest.mark.parametrize("lost", ["pointercancel", "pointermove"])
def test_a_drag_whose_release_the_page_misses_is_written(page: Page, lost: str) -> None:
    asset("daily", DAILY_2013)
    page.goto("/assets/daily/")
    field = page.get_by_label("Selected partitions")
    cell(page, "2013-01-08").hover()
    page.mouse.down()
    cell(page, "2013-01-10").hover()
    assert len(picked(page)) == 3
    expect(field).to_have_value("")
    # The browser cancels the pointer, or the pointer comes back beside the grid with no button.
    heading = page.get_by_role("heading", level=1)
    heading.dispatch_event(lost, {"pointerType": "mouse", "buttons": 0})
    expect(field).to_have_value("2013-01-08..2013-01-10")
    expect(page.locator("#selection-count")).to_have_text("3 partitions selected")
    assert len(picked(page)) == 3
    # The drag has ended: the pointer extends no range.
    cell(page, "2013-01-13").hover()
    assert len(picked(page)) == 3


def test_the_grid_is_one_tab_stop_with_arrow_keys(page: Page) -> None:
    asset("daily", DAILY_2013)
    page.goto("/assets/daily/")
    assert page.locator('.partition-grid td > a[tabindex="0"]').count() == 1
    cell(page, "2013-01-01").focus()
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(cell(page, "2013-01-09")).to_be_focused()
    page.keyboard.press("Space")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_label("Selected partitions")).to_have_value("2013-01-09..2013-01-11")
    page.keyboard.press("End")
    expect(cell(page, "2013-12-31")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(cell(page, "2013-12-31")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Selected partitions")).to_have_value("")


def test_keys_and_shift_select_rectangles_and_several_ranges(page: Page) -> None:
    asset("weather", DAY_BY_AIRPORT)
    page.goto("/assets/weather/")
    field = page.get_by_label("Selected partitions")
    cell(page, "2013-03-04|EWR").click(modifiers=["Control"])
    cell(page, "2013-03-06|JFK").click(modifiers=["Shift"])
    expect(field).to_have_value("date=2013-03-04..2013-03-06 airport=EWR,JFK")
    page.keyboard.press("Escape")
    # A rectangle over segments.
    cell(page, "2013-05-01|EWR").focus()
    for key in ("Shift+ArrowRight", "Shift+ArrowDown"):
        page.keyboard.press(key)
    expect(field).to_have_value("date=2013-05-01..2013-05-02 airport=EWR,JFK")
    # With Ctrl, and from Space on, earlier ranges stay.
    for key in ("ArrowRight", "ArrowRight", "Control+Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    for key in ("ArrowDown", "Space", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    expect(field).to_have_value(
        "date=2013-05-01..2013-05-02 airport=EWR;"
        " date=2013-05-01..2013-05-02,2013-05-04..2013-05-06 airport=JFK;"
        " date=2013-05-05..2013-05-06 airport=LGA"
    )
    expect(page.locator("#selection-count")).to_have_text("9 partitions selected")
    # Shift alone begins anew.
    for key in ("ArrowUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    expect(field).to_have_value("date=2013-05-04..2013-05-05 airport=JFK")


def test_a_zoomed_out_cell_is_selected_and_the_selection_is_kept_over_zooms(page: Page) -> None:
    hourly = asset("hourly", PartitionByInterval("@hourly", start=date(2013, 1, 1),
        end=date(2014, 1, 1)))  # fmt: skip
    record(hourly, "2013-02-03", lambda n: "failed" if n < 2 else "materialized")
    page.goto("/assets/hourly/?zoom=year&at=2013-01-01")
    field = page.get_by_label("Selected partitions")
    drag(page, "2013-02-03", "2013-02-05")
    expect(field).to_have_value("2013-02-03..2013-02-05")
    expect(page.locator("#selection-count")).to_have_text("72 partitions selected")
    page.get_by_role("link", name="Month", exact=True).click()
    expect(page.get_by_role("heading", name="December 2013").first).to_be_visible()
    expect(field).to_have_value("2013-02-03..2013-02-05")
    page.goto("/assets/hourly/?zoom=month&at=2013-02-01")
    page.get_by_role("link", name="Select failed 2").click()
    expect(field).to_have_value("2013-02-03T00:00Z..2013-02-03T01:00Z")
    expect(page.locator("a.selected")).to_have_count(2)


def test_cells_are_selected_by_touch(live_server: LiveServer, browser: Client) -> None:
    asset("daily", DAILY_2013)
    with opened_page(live_server.url, browser, width=390, touch=True) as page:
        page.goto("/assets/daily/")
        page.get_by_role("button", name="Select by tapping").tap()
        cell(page, "2013-01-09").tap()
        cell(page, "2013-01-11").tap()
        field = page.get_by_label("Selected partitions")
        expect(field).to_have_value("2013-01-09,2013-01-11")
        expect(page.locator("#selection-count")).to_have_text("2 partitions selected")
        cell(page, "2013-01-31").scroll_into_view_if_needed()
        # A finger that moves over cells adds a range, and does not scroll the page.
        touch = page.context.new_cdp_session(page)
        points = [_point(cell(page, key)) for key in ("2013-01-14", "2013-01-15", "2013-01-16")]
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
        for point in points[1:]:
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect(field).to_have_value("2013-01-09,2013-01-11,2013-01-14..2013-01-16")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_partition_opens_in_a_drawer_and_keys_lead_back(page: Page) -> None:
    asset("daily", DAILY_2013)
    page.goto("/assets/daily/")
    cell(page, "2013-03-04").focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_role("heading", name="2013-03-04")).to_be_focused()
    expect(drawer).to_contain_text("The asset has no schedule")
    expect(page.locator(".cells [aria-current]")).to_have_attribute(
        "aria-label", re.compile("2013-03-04")
    )
    drawer.get_by_role("link", name="Next").click()
    expect(drawer.get_by_role("heading", name="2013-03-05")).to_be_focused()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(cell(page, "2013-03-05")).to_be_focused()
    expect(page.locator(".cells [aria-current]")).to_have_count(0)
    expect(page).to_have_url(f"{page.url.split('/assets/')[0]}/assets/daily/")


def test_without_a_script_a_partition_is_a_page(live_server: LiveServer, browser: Client) -> None:
    asset("daily", DAILY_2013)
    with opened_page(live_server.url, browser, script=False) as page:
        page.goto("/assets/daily/")
        cell(page, "2013-03-04").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("2013-03-04")
        expect(page.get_by_text("The asset has no schedule")).to_be_visible()
