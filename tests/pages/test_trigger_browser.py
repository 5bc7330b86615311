"""The trigger form in a real browser: clicks, the address, keys of the picker, and no script."""

from collections.abc import Iterator
from typing import Literal

import pytest
from django.test import Client
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Asset, AssetDependency
from backfills_app.models import Backfill
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset
from tests.pages.real_browser import opened_page
from tests.partition_records import record

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(live_server: LiveServer, browser: Client) -> Iterator[Page]:
    """Open Vera's browser, a real browser."""
    with opened_page(live_server.url, browser) as opened:
        yield opened


def declare() -> None:
    """Create the weather by day and airport, which is complete, and delays that read it."""
    weather = asset("weather", DAY_BY_AIRPORT)
    delays = asset("delays", DAILY_2013, upstream={"weather": None})
    AssetDependency.objects.create(upstream=weather, downstream=delays, inlet=True)
    record(weather, "date=2013")
    record(delays, "2013")


def choose(page: Page, name: str) -> None:
    """Type the name of an asset, and leave the field."""
    field = page.get_by_label("Asset", exact=True)
    field.fill(name)
    field.press("Tab")


def test_march_for_one_airport_with_downstream_takes_five_clicks(page: Page) -> None:
    declare()
    page.goto("/")
    page.get_by_role("link", name="Assets").first.click()
    page.get_by_role("link", name="weather").first.click()
    march = page.locator("section", has_text="March 2013")
    march.get_by_role("rowheader", name="JFK").click()
    page.get_by_role("button", name="Backfill with downstream…").click()
    page.get_by_role("button", name="Run all 62 partitions again").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("backfill_weather")
    backfill = Backfill.objects.get()
    assert backfill.logical_dates == "date=2013-03-01..2013-03-31 airport=JFK"
    assert list(backfill.assets.values_list("asset__name", flat=True)) == ["weather", "delays"]


def test_the_address_keeps_the_form_over_reload_and_back(page: Page) -> None:
    declare()
    page.goto("/backfills/new/")
    choose(page, "weather")
    page.get_by_label("JFK").check()
    page.locator("#id_start").fill("2013-03-01")
    page.locator("#id_end").fill("2013-03-31")
    page.get_by_label("All, including").check()
    expect(page.locator("#start-backfill")).to_have_text("Start backfill of 31 partitions")
    expect(page.locator("#count-all")).to_have_text("31")
    page.wait_for_url("**segment-airport=JFK**")
    page.reload()
    expect(page.get_by_label("JFK")).to_be_checked()
    expect(page.locator("#id_end")).to_have_value("2013-03-31")
    page.get_by_role("link", name="Runs").first.click()
    page.go_back()
    expect(page.get_by_label("All, including")).to_be_checked()
    expect(page.locator("#start-backfill")).to_have_text("Start backfill of 31 partitions")


def test_text_typed_while_the_form_loads_the_fields_of_the_asset_stays(page: Page) -> None:
    declare()
    page.goto("/backfills/new/")
    waiting: list[Route] = []
    page.route("**/backfills/new/?fragment=dependent**", lambda route: waiting.append(route))
    choose(page, "weather")
    page.locator("#id_start").fill("2013-03-01")
    page.locator("#id_end").fill("2013-03-31")
    page.get_by_label("All, including").check()
    page.get_by_text("Partition selection instead of dates").click()
    page.get_by_text("Advanced:").click()
    description = page.get_by_label("Description")
    description.press_sequentially("cold")
    description.press("Home")
    while not waiting:
        page.wait_for_timeout(50)
    # No other request follows.
    page.wait_for_timeout(700)
    assert len(waiting) == 1
    waiting[0].continue_()
    expect(page.get_by_label("JFK")).to_be_visible()
    expect(page.locator("#id_selection")).to_be_visible()
    expect(description).to_be_focused()
    page.keyboard.type("very ")
    expect(description).to_have_value("very cold")
    expect(page.locator("#id_start")).to_have_value("2013-03-01")
    expect(page.locator("#id_end")).to_have_value("2013-03-31")
    expect(page.get_by_label("All, including")).to_be_checked()
    expect(page.locator("#preview")).to_contain_text("93 partitions")
    page.wait_for_url("**start=2013-03-01**")


def test_the_button_of_a_picker_keeps_the_focus_while_the_form_loads_the_fields_of_the_asset(
    page: Page,
) -> None:
    declare()
    page.goto("/backfills/new/?asset=delays")
    waiting: list[Route] = []
    page.route("**/backfills/new/?fragment=dependent**", lambda route: waiting.append(route))
    choose(page, "weather")
    button = page.get_by_label("Pick a date: From")
    button.focus()
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    expect(page.get_by_label("JFK")).to_be_visible()
    expect(button).to_be_focused()


def test_counts_of_an_older_state_of_the_form_come_too_late(page: Page) -> None:
    declare()
    counts: list[Route] = []
    page.route("**/backfills/new/?fragment=counts**", lambda route: counts.append(route))
    page.goto("/backfills/new/?asset=delays&start=2013-03-01&end=2013-03-31")
    expect(page.locator("#preview")).to_contain_text("Nothing to run")
    page.locator("#id_end").fill("2013-03-02")
    while len(counts) < 2:
        page.wait_for_timeout(50)
    older, newer = counts
    newer.continue_()
    expect(page.locator("#count-all")).to_have_text("2")
    with page.expect_response("**fragment=counts**end=2013-03-31**"):
        older.continue_()
    page.wait_for_timeout(200)
    expect(page.locator("#count-all")).to_have_text("2")


def test_the_picker_opens_at_the_data_and_works_by_keys(page: Page) -> None:
    declare()
    page.goto("/backfills/new/?asset=delays")
    page.get_by_role("button", name="Pick a date: From").focus()
    page.keyboard.press("Enter")
    months = page.locator(".flatpickr-calendar.open .flatpickr-monthDropdown-months")
    expect(months).to_have_value("11")
    expect(page.locator(".flatpickr-calendar.open .flatpickr-weekday").first).to_contain_text("Mon")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#id_start")).to_have_value("2013-12-30")


# The red, green, blue and alpha of a colour in any notation, from 0 to 255, as it is painted.
_PAINTED = """colour => {
        const canvas = document.createElement("canvas").getContext("2d");
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    }"""
# The contrast, as WCAG computes it, of an element's text with the background of the calendar, or of
# the element where it has one.
_CONTRAST = f"""element => {{
    const painted = {_PAINTED};
    const brightness = ([red, green, blue]) => {{
        const linear = value => value <= 10.31
            ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    }};
    const backgroundOf = one => painted(getComputedStyle(one).backgroundColor);
    const own = backgroundOf(element);
    const calendar = backgroundOf(element.closest(".flatpickr-calendar"));
    const back = brightness(own[3] === 0 ? calendar : own);
    const text = brightness(painted(getComputedStyle(element).color));
    return (Math.max(back, text) + 0.05) / (Math.min(back, text) + 0.05);
}}"""
_BRIGHTNESS = f"""element => ({_PAINTED})(getComputedStyle(element).backgroundColor)
    .slice(0, 3).reduce((sum, value) => sum + value, 0)"""


@pytest.mark.parametrize("dark", [False, True])
def test_the_picker_can_be_read_and_has_the_theme_of_the_page(
    live_server: LiveServer, browser: Client, dark: bool
) -> None:
    declare()
    with opened_page(live_server.url, browser, dark=dark) as page:
        page.goto("/backfills/new/?asset=delays&start=2013-11-05")
        page.get_by_role("button", name="Pick a date: From").click()
        calendar = page.locator(".flatpickr-calendar.open")
        for selector in (
            ".flatpickr-monthDropdown-months", "input.cur-year", ".flatpickr-weekday >> nth=0",
            ".flatpickr-day.selected", ".flatpickr-day:text-is('20')", ".nextMonthDay >> nth=0",
        ):  # fmt: skip
            assert calendar.locator(selector).evaluate(_CONTRAST) >= 4.5, selector
        assert (calendar.evaluate(_BRIGHTNESS) < 3 * 128) is dark


@pytest.mark.parametrize(
    ("motion", "animation"), [("no-preference", "fpFadeInDown"), ("reduce", "none")]
)
def test_the_picker_moves_only_where_the_person_allows_motion(
    page: Page, motion: Literal["no-preference", "reduce"], animation: str
) -> None:
    declare()
    page.emulate_media(reduced_motion=motion)
    page.goto("/backfills/new/?asset=delays")
    page.get_by_role("button", name="Pick a date: From").click()
    expect(page.locator(".flatpickr-calendar.open")).to_have_css("animation-name", animation)


def test_downstream_assets_are_chosen_in_the_graph(page: Page) -> None:
    declare()
    report = asset("report", DAILY_2013, upstream={"delays": None})
    AssetDependency.objects.create(
        upstream=Asset.objects.get(name="delays"), downstream=report, inlet=True
    )
    addresses: list[str] = []
    page.on("request", lambda sent: addresses.append(sent.url))
    page.goto("/backfills/new/")
    choose(page, "weather")
    page.locator("#id_start").fill("2013-03-01")
    page.locator("#id_end").fill("2013-03-01")
    page.get_by_label("All, including").check()
    expect(page.locator("#start-backfill")).to_have_text("Start backfill of 3 partitions")
    assert not [address for address in addresses if "graph" in address]
    page.get_by_text("Graph of downstream assets").click()

    delays, of_report = (
        page.locator("[data-node]").filter(has=page.locator("title", has_text=name))
        for name in ("delays", "report")
    )
    expect(delays).to_have_attribute("aria-checked", "false")
    delays.click()
    box = page.locator('[name="downstream_assets"][value="delays"]')
    expect(box).to_be_checked()
    expect(delays).to_have_attribute("aria-checked", "true")
    expect(delays).to_have_class("node chosen")
    expect(page.locator("#start-backfill")).to_have_text("Start backfill of 4 partitions")
    page.wait_for_url("**downstream=chosen&downstream_assets=delays**")
    # By keys, and from all assets.
    page.locator('[name="downstream"][value="all"]').check()
    expect(of_report).to_have_attribute("aria-checked", "true")
    of_report.focus()
    page.keyboard.press("Space")
    expect(of_report).to_have_attribute("aria-checked", "false")
    expect(page.locator('[name="downstream"][value="chosen"]')).to_be_checked()
    expect(box).to_be_checked()
    # The boxes mark the nodes.
    box.uncheck()
    expect(delays).to_have_attribute("aria-checked", "false")
    # Another asset has another graph.
    choose(page, "delays")
    expect(page.locator("[data-drawn='2']")).to_be_visible()
    expect(of_report).to_have_attribute("aria-checked", "false")


def test_the_boxes_of_downstream_assets_are_ticked_as_the_choice_says(page: Page) -> None:
    declare()
    page.goto("/backfills/new/?asset=weather&downstream=all")
    box = page.locator('[name="downstream_assets"][value="delays"]')
    expect(box).to_be_checked()
    page.locator('[name="downstream"][value="none"]').check()
    expect(box).not_to_be_checked()
    page.locator('[name="downstream"][value="all"]').check()
    expect(box).to_be_checked()
    page.wait_for_url("**downstream=all**")
    assert "downstream_assets" not in page.url
    box.uncheck()
    expect(page.locator('[name="downstream"][value="chosen"]')).to_be_checked()


def test_trigger_watch_and_cancel_without_a_script(
    live_server: LiveServer, browser: Client
) -> None:
    delays = asset("delays", DAILY_2013)
    report = asset("report", DAILY_2013, upstream={"delays": None})
    AssetDependency.objects.create(upstream=delays, downstream=report, inlet=True)
    with opened_page(live_server.url, browser, script=False) as page:
        page.goto("/backfills/new/")
        page.get_by_label("Asset", exact=True).fill("delays")
        page.locator("#id_start").fill("2013-03-01")
        page.locator("#id_end").fill("2013-03-03")
        page.get_by_role("button", name="Update preview").click()
        expect(page.locator("#preview")).to_contain_text("3 partitions in 3 runs")
        page.get_by_label("Selected", exact=True).check()
        page.get_by_role("checkbox", name="report").check()
        page.get_by_role("button", name="Update preview").click()
        expect(page.locator("#preview")).to_contain_text("6 partitions in 6 runs")
        page.get_by_role("button", name="Start backfill").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("backfill_delays")
        page.get_by_role("link", name="Cancel…").click()
        page.get_by_role("button", name="Cancel backfill").click()
        expect(page.locator("#progress")).to_contain_text("ancel")
