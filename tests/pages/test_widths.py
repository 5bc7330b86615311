"""Pages in a real browser at four widths: nothing is cut, no error, no request to another host."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from playwright.sync_api import Page

from accounts_app.models import User
from assets_app.models import Run, RunState
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset
from tests.gateways import record_gateway
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.run_records import failed_partition, recorded_run
from tests.partition_records import record

LONG_NAME = "delays_of_all_airlines_by_airport_with_the_weather_of_the_hour_and_of_the_day_before"
LONG_ERROR = (
    "ValueError: the file s3://lake/raw/2013/01/05/part-0001.parquet of the flights of the day has"
    " no column 'dep_delay'; the file has dest, origin and carrier"
)
WIDTHS = (390, 768, 1100, 1200, 1400)
# Elements that are wider than their room: the page itself, cards, lists and the navigation.
_CUT = """() => [document.documentElement, ...document.querySelectorAll(
    '.card, .table-responsive, .sw-nav, .sw-bar')
].filter((element) => element.scrollWidth > element.clientWidth + 1).map((element) =>
    `${element.tagName} ${element.className}: ${element.scrollWidth} > ${element.clientWidth}`)"""

# Texts that are wider than their element, or that reach into the next element.
_CUT_OR_OVERLAPPING = """labels => labels.filter((label, at) => {
    const next = labels[at + 1]?.getBoundingClientRect().left ?? innerWidth;
    return label.scrollWidth > label.clientWidth || label.getBoundingClientRect().right > next;
}).map((label) => label.textContent.trim())"""


@pytest.fixture
def addresses(vera: User) -> list[str]:
    """Fill the pages with long names, long errors and many states; return the addresses."""
    User.objects.filter(pk=vera.pk).update(is_staff=True)
    flights = asset(
        "raw_flights", DAILY_2013, description="Flights of a day. " * 9, group="flights"
    )
    record(flights, "2013-01-01..2013-11-30", lambda n: "materialized" if n % 9 else "failed")
    long = asset(LONG_NAME, DAY_BY_AIRPORT)
    asset(f"{LONG_NAME}_paused", DAILY_2013, paused=True)
    for hours in range(1, 7):
        failed_partition(flights, f"2013-12-0{hours}", error=LONG_ERROR, ago=timedelta(hours=hours))
        failed_partition(long, f"2013-12-0{hours}|JFK", error=f"KeyError: 'dest {hours}'")
    _count_on_from(12_345_678)
    now = timezone.now()
    started = now - timedelta(hours=17, minutes=59)
    run = recorded_run(long, RunState.RUNNING, "date=2013-01-01 airport=*", started_at=started)
    record_gateway("host-1.example.org.scheduled")
    record_gateway("host-1.example.org.backfill", queue="backfill", silent_seconds=99)
    with transaction.atomic():
        backfill = written_backfill(vera, f"{LONG_NAME}_paused", description="Once more. " * 9)
        for state, number in (("succeeded", 9), ("failed", 2), ("running", 3), ("queued", 4)):
            runs_of(backfill, state, number)
    # A long time ago is told in full: day, time, and zone.
    Run.objects.filter(state="queued").update(created_at=now - timedelta(days=300))
    return [
        "/", "/?span=7d", "/assets/", "/runs/", "/runs/?by=request", "/backfills/",
        f"/backfills/{backfill.pk}/", f"/runs/{run.pk}/", f"/runs/{run.pk}/log/search/?q=x",
        "/gateways/", "/search/?q=a", "/audit/", f"/assets/{LONG_NAME}/?tab=runs",
        f"/assets/{LONG_NAME}/?tab=settings", f"/assets/{LONG_NAME}/?tab=validations",
        "/assets/raw_flights/partitions/2013-12-01/",
    ]  # fmt: skip


def _count_on_from(number: int) -> None:
    """Give new runs the ids of a server that has worked for years."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [Run._meta.db_table, number]
        )


def _complaint(page: Page, text: str) -> list[str]:
    """Return the message of the console; a browser need not know each feature of the policy."""
    return [] if "Permissions-Policy header" in text else [f"{page.url}: {text}"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_page_is_wider_than_its_window_and_no_list_wider_than_its_card(
    page: Page, addresses: list[str]
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.extend(_complaint(page, message.text)))
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    for address in addresses:
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            complaints += [f"{address} at {width}: {cut}" for cut in page.evaluate(_CUT)]
    assert complaints == []
    assert hosts == {page.url.split("/")[2]}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("span", ["24h", "7d"])
def test_no_label_below_the_chart_of_runs_is_cut_on_a_phone(page: Page, span: str) -> None:
    flights = asset("raw_flights", DAILY_2013)
    for hours in range(20):
        failed_partition(flights, f"2013-12-{hours + 1:02}", ago=timedelta(hours=hours))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/?span={span}")
    labels = page.locator(".run-chart small:visible")
    assert labels.count() >= 4
    assert labels.evaluate_all(_CUT_OR_OVERLAPPING) == []
