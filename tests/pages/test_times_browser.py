"""Times on pages, in a real browser: all follow the zone that the reader chooses."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Run, RunState
from slicewise import PartitionByInterval
from tests.factories import DAILY_2013, asset
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.real_browser import opened_page
from tests.pages.run_records import recorded_run

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# No clock change: always 5 h 30 min ahead of UTC.
ZONE, AHEAD = "Asia/Kolkata", timedelta(hours=5, minutes=30)
NEXT_CENTURY = PartitionByInterval("@daily", timezone=ZONE, start="2013-01-01")


@pytest.fixture
def page(live_server: LiveServer, browser: Client) -> Iterator[Page]:
    """Open Vera's browser, whose reader has chosen the zone of the asset."""
    with opened_page(live_server.url, browser) as opened:
        opened.add_init_script("localStorage.setItem('slicewise-zone', 'asset')")
        yield opened


def name_zone(page: Page, name: str) -> None:
    """Let each page that the browser opens name a zone of an asset."""
    page.add_init_script(
        """new MutationObserver((_, observer) => {
          const main = document.querySelector("main");
          if (!main) return;
          main.dataset.zone = "ZONE";
          observer.disconnect();
        }).observe(document, { childList: true, subtree: true })""".replace("ZONE", name)
    )


def test_tips_of_the_chart_of_runs_are_in_the_chosen_zone(page: Page) -> None:
    instant = datetime.now(UTC) - timedelta(hours=2)
    recorded_run(asset("flights", DAILY_2013), RunState.SUCCEEDED, started_at=instant,
                 ended_at=instant)  # fmt: skip
    # The overview is the page of no asset, and so names no zone.
    name_zone(page, ZONE)
    page.goto("/")
    column = page.locator(".run-chart a").first
    start = instant.replace(minute=0, second=0, microsecond=0) + AHEAD
    expect(column).to_have_attribute("title", re.compile(rf"{start:%-I:%M}"))
    expect(column).not_to_have_attribute("title", re.compile("UTC"))
    expect(page.locator("[data-zone-name]")).to_have_text(re.compile("Kolkata|Calcutta"))


def test_ages_below_a_minute_change_within_seconds(page: Page) -> None:
    recorded_run(asset("flights", DAILY_2013), RunState.QUEUED)
    page.goto("/runs/")
    age = page.locator("tbody time[data-form=ago]").first
    expect(age).to_have_text(re.compile(r"\d+ sec\. ago"))
    before = age.text_content()
    assert before
    expect(age).not_to_have_text(before, timeout=4000)


def bounds(page: Page, clock: str) -> list[str]:
    """Type a clock time of Berlin as both bounds, and return the bounds that the form sends."""
    for label in ("Created after (Europe/Berlin)", "Created before (Europe/Berlin)"):
        page.get_by_label(label).fill(clock)
    names = ("created_after", "created_before")
    return [page.locator(f"[name={name}]").input_value() for name in names]


def test_bounds_of_runs_are_typed_in_the_chosen_zone(
    live_server: LiveServer, browser: Client
) -> None:
    days = asset("days", NEXT_CENTURY)
    runs = [recorded_run(days, RunState.QUEUED).pk for _ in range(2)]
    for pk, hour in zip(runs, (3, 5), strict=True):
        Run.objects.filter(pk=pk).update(created_at=datetime(2024, 3, 31, hour, tzinfo=UTC))
    with opened_page(live_server.url, browser) as page:
        # Clocks went forward at 01:00 UTC on this day.
        page.add_init_script(
            """const original = Intl.DateTimeFormat.prototype.resolvedOptions;
            Intl.DateTimeFormat.prototype.resolvedOptions = function () {
              return { ...original.call(this), timeZone: "Europe/Berlin" };
            };"""
        )
        # An address of old: a text without a zone is in UTC.
        page.goto("/runs/?created_after=2024-03-31 04:00")
        field = page.get_by_label("Created after (Europe/Berlin)")
        expect(field).to_have_value("2024-03-31T06:00")
        expect(page.locator("tbody tr")).to_have_count(1)
        field.fill("2024-03-31T04:30")
        page.get_by_label("Created before (Europe/Berlin)").fill("2024-03-31T01:30")
        page.get_by_label("Created before (Europe/Berlin)").fill("2024-03-31T06:30")
        page.get_by_role("button", name="Search", exact=True).click()
        page.wait_for_url(re.compile("created_before=2024-03-31T04%3A30Z"))
        assert "created_after=2024-03-31T02%3A30Z" in page.url
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator(f"#run-{runs[0]}")).to_be_visible()
        expect(page.get_by_label("Created before (Europe/Berlin)")).to_have_value(
            "2024-03-31T06:30"
        )
        # Clocks repeat this time; skip the next; and know no year of five digits.
        assert bounds(page, "2024-10-27T02:30") == ["2024-10-27T00:30Z", "2024-10-27T01:30Z"]
        assert bounds(page, "2024-03-31T02:30") == ["2024-03-31T00:30Z", "2024-03-31T01:30Z"]
        assert bounds(page, "12024-07-01T02:30") == ["", ""]
        # The same instants by the clock of another zone.
        assert bounds(page, "2024-07-01T02:30") == ["2024-07-01T00:30Z"] * 2
        page.locator(".sw-menu summary").click()
        page.get_by_label("Times in").select_option("utc")
        expect(page.get_by_label("Created after (UTC)")).to_have_value("2024-07-01T00:30")
        page.goto("/runs/?created_after=yesterday")
        expect(page.get_by_label("Created after (UTC)")).to_have_value("yesterday")


def test_reasons_and_times_of_a_partition_are_in_the_chosen_zone(page: Page) -> None:
    asset("days", NEXT_CENTURY)
    tomorrow = (timezone.now() + AHEAD).date() + timedelta(days=1)
    page.goto(f"/assets/days/partitions/{tomorrow}/")
    reason = page.get_by_text("The time window ends at")
    # A window ends at midnight there.
    expect(reason).to_contain_text("12:00 AM")
    expect(reason).not_to_contain_text("UTC")
    expect(page.locator("[data-zone-name]")).to_have_text(re.compile("Kolkata|Calcutta"))
    # Another zone is shown without another request: a page that answers a form would be sent again.
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.locator(".sw-menu summary").click()
    page.get_by_label("Times in").select_option("utc")
    expect(page.locator("[data-zone-name]")).to_have_text("Times: UTC")
    expect(reason).to_contain_text("6:30 PM")
    page.get_by_label("Times in").select_option("asset")
    expect(page.locator("[data-zone-name]")).to_have_text(re.compile("Kolkata|Calcutta"))
    expect(reason).to_contain_text("12:00 AM")
    assert requests == []


def test_the_zone_is_named_once(page: Page) -> None:
    instant = timezone.now() - timedelta(hours=1)
    run = recorded_run(asset("days", NEXT_CENTURY), RunState.SUCCEEDED, started_at=instant,
                       ended_at=instant)  # fmt: skip
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("[data-zone-name]")).to_have_text(re.compile("Kolkata|Calcutta"))
    assert not re.search(r"GMT|UTC|IST", page.locator("main").inner_text())
    title = page.locator("dl time").first.get_attribute("title")
    assert title
    assert re.search(r"(GMT\+5:30|IST).*UTC", title)
    # Whoever reads in another zone sees the zone of the asset on hover.
    page.add_init_script("localStorage.setItem('slicewise-zone', 'utc')")
    page.reload()
    of_asset = re.compile(rf"UTC \(.*(GMT\+5:30|IST), {ZONE}\)$")
    expect(page.locator("dl time").first).to_have_attribute("title", of_asset)


@pytest.mark.parametrize("chosen", ["utc", "asset"])
def test_a_zone_that_the_browser_does_not_know_is_left_out(page: Page, chosen: str) -> None:
    instant = datetime(2026, 1, 5, 6, tzinfo=UTC)
    run = recorded_run(asset("days", NEXT_CENTURY), RunState.SUCCEEDED, started_at=instant,
                       ended_at=instant)  # fmt: skip
    page.add_init_script(f"localStorage.setItem('slicewise-zone', '{chosen}')")
    # The zone of the reader is another than UTC.
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    name_zone(page, "Mars/Olympus")
    page.goto(f"/runs/{run.pk}/")
    started = page.locator('time[datetime^="2026-01-05T06:00"]').first
    title = started.get_attribute("title") or ""
    shown = r"6:00:00 AM UTC" if chosen == "utc" else r"7:00:00 AM GMT\+1 \(.* UTC\)"
    assert re.search(rf"{shown}$", title)
    assert "Mars" not in title
    # Fields of times are in the same zone.
    page.goto("/runs/?created_after=2026-01-05 06:00")
    hour, named = ("06", "UTC") if chosen == "utc" else ("07", "Europe/Berlin")
    field = page.get_by_label(f"Created after ({named})")
    expect(field).to_have_value(f"2026-01-05T{hour}:00")


def test_times_in_the_hour_that_clocks_repeat_have_the_name_of_the_zone(page: Page) -> None:
    nights = PartitionByInterval("@daily", timezone="Europe/Amsterdam", start="2013-01-01")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    run = recorded_run(asset("nights", nights), RunState.SUCCEEDED, started_at=first,
                       ended_at=first + timedelta(hours=1))  # fmt: skip
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("[data-zone-name]")).to_have_text(re.compile("Amsterdam"))
    text = page.locator("main").inner_text()
    assert re.search(r"2:30:00 AM GMT\+2", text)
    assert re.search(r"2:30:00 AM GMT\+1", text)


def test_the_chart_of_a_backfill_is_in_the_chosen_zone(page: Page, vera: object) -> None:
    asset("raw_flights", DAILY_2013)
    with transaction.atomic():
        backfill = written_backfill(vera)  # type: ignore[arg-type]
        runs_of(backfill, "succeeded", 3)
    page.goto(f"/backfills/{backfill.pk}/")
    chart = page.locator("svg.timeline")
    expect(chart).to_have_attribute("aria-label", re.compile("Runs that ended, from"))
    named = page.locator("[data-zone-name]")
    expect(named).to_have_text(re.compile("Times: "))
    label = chart.get_attribute("aria-label") or ""
    assert "UTC" not in label


def test_no_time_of_an_updated_part_is_painted_in_utc(page: Page, vera: object) -> None:
    asset("raw_flights", DAILY_2013)
    with transaction.atomic():
        backfill = written_backfill(vera)  # type: ignore[arg-type]
        runs_of(backfill, "succeeded", 3)
    page.goto(f"/backfills/{backfill.pk}/")
    # A microtask runs after all listeners of the swap, and before the browser paints.
    page.evaluate(
        """() => {
          window.seen = [];
          document.addEventListener("htmx:afterSwap", () => queueMicrotask(() => {
            const times = [...document.querySelectorAll("main time[datetime]")];
            const inUtc = times.filter((time) => time.dataset.shown === undefined);
            window.seen.push(times.length, inUtc.length);
          }));
        }"""
    )
    with transaction.atomic():
        runs_of(backfill, "running", 2)
    page.wait_for_function("() => window.seen.length >= 4")
    seen = page.evaluate("window.seen")
    assert min(seen[::2]) > 0
    assert set(seen[1::2]) == {0}
