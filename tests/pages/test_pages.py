"""Pages as a person sees a page: status, words, and the number of statements."""

from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, PartitionCount, Run, RunAttempt, RunGroup, RunLog, RunState
from backfills_app.models import Backfill
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionBySequence
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset, person
from tests.gateways import record_gateway_of_each_queue
from tests.pages.markup import page_at, polled_address
from tests.partition_records import record

pytestmark = pytest.mark.django_db
PAGES = ("assets", "backfills", "partitions")
ARGUMENTS: dict[str, Any] = {"name": "raw_flights", "key": "2013-01-01", "pk": 1}


def hours(first: date, stop: date) -> PartitionByInterval:
    """Define hourly partitions of these days."""
    return PartitionByInterval("@hourly", start=first, end=stop)


def page_names() -> Iterator[tuple[str, list[str]]]:
    """List the names and arguments of all addresses of the pages."""
    for resolver in get_resolver().url_patterns:
        if isinstance(resolver, URLResolver) and resolver.namespace in (
            "assets",
            "backfills",
            "partitions",
        ):
            for pattern in resolver.url_patterns:
                if isinstance(pattern, URLPattern):
                    yield f"{resolver.namespace}:{pattern.name}", list(pattern.pattern.converters)


def test_no_page_opens_without_signing_in() -> None:
    names = list(page_names())
    assert len(names) > 20
    for name, needed in names:
        address = reverse(name, kwargs={argument: ARGUMENTS[argument] for argument in needed})
        answer = Client().get(address)
        assert answer.status_code == 302, name
        assert answer["Location"].startswith("/sign-in/"), name


def test_a_wrong_password_is_refused_in_words() -> None:
    User.objects.create_user("vera", password="right")
    answer = Client().post("/sign-in/", {"username": "vera", "password": "wrong"})
    assert answer.status_code in (200, 401)
    assert "Please enter a correct username and password" in answer.content.decode()


@pytest.mark.parametrize("address", ["/", "/assets/", "/runs/", "/backfills/", "/bundles/"])
def test_an_empty_list_says_what_to_do_next(browser: Client, address: str) -> None:
    answer = browser.get(address)
    assert answer.status_code == 200
    assert "empty-hint" in answer.content.decode()


@pytest.mark.parametrize("address", ["/", "/assets/", "/assets/graph/all/"])
def test_without_assets_pages_name_the_setting_in_its_form(browser: Client, address: str) -> None:
    page = page_at(browser, address)
    assert "Set SLICEWISE_BUNDLES to name=/folder," in page
    assert "then restart the bulk worker." in page


def test_no_page_has_script_or_style_of_its_own(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    for address in (
        "/",
        "/assets/raw_flights/",
        "/backfills/new/",
        "/assets/raw_flights/?tab=definition",
    ):
        text = browser.get(address).content.decode()
        assert " style=" not in text
        assert "<style" not in text
        assert text.count("<script") == text.count("<script src=") + text.count(
            '<script type="module" src='
        )


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        ("partition", "one run per partition"),
        ("range", "single run for all requested partitions"),
        (7, "up to 7 partitions per run"),
    ],
)
def test_an_asset_says_how_its_partitions_are_cut_into_runs(
    browser: Client, strategy: str | int, sentence: str
) -> None:
    asset("raw_flights", DAILY_2013, options={"strategy": strategy})
    page = browser.get("/assets/raw_flights/?tab=definition").content.decode()
    assert sentence in " ".join(page.split())


def test_a_grid_page_costs_the_same_for_ten_and_ten_thousand_partitions(browser: Client) -> None:
    small = asset(
        "small", PartitionByInterval("@hourly", start=date(2026, 1, 1), end=date(2026, 1, 2))
    )
    large = asset(
        "large", PartitionByInterval("@hourly", start=date(2024, 1, 1), end=date(2025, 3, 1))
    )
    record(small, "2026-01-01T00:00Z..2026-01-01T09:00Z")
    assert (
        record(large, "2024, 2025", lambda n: "failed" if n % 50 == 0 else "materialized") > 10_000
    )
    numbers = set()
    for name, zoom in (("small", "month"), ("large", "month"), ("small", "day"), ("large", "day")):
        with CaptureQueriesContext(connection) as statements:
            answer = browser.get(f"/assets/{name}/?zoom={zoom}")
        assert answer.status_code == 200
        assert len(answer.content) < 150_000
        numbers.add(len(statements))
    assert numbers == {max(numbers)}
    assert max(numbers) <= 10


def test_a_zoomed_out_grid_reads_counts_and_no_partitions(browser: Client) -> None:
    hourly = asset(
        "hourly", PartitionByInterval("@hourly", start=date(2024, 1, 1), end=date(2025, 1, 1))
    )
    record(hourly, "2024-02", lambda n: "failed" if n == 5 else "materialized")
    with CaptureQueriesContext(connection) as statements:
        text = browser.get("/assets/hourly/?zoom=year").content.decode()
    assert "2024-02-01: 23 materialized, 1 failed" in text
    assert "2024-02-02: 24 materialized" in text
    # One of these finds stale partitions.
    assert len(statements) <= 11


def test_the_list_of_assets_takes_as_many_statements_for_one_as_for_many(browser: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as statements:
            assert browser.get("/assets/").status_code == 200
        return len(statements)

    record(asset("a0", DAILY_2013), "2013-01")
    few = statements()
    for n in range(1, 12):
        record(asset(f"a{n}", DAY_BY_AIRPORT), "date=2013-01-01..2013-01-03 airport=*")
    assert statements() == few


def test_a_list_of_assets_is_searched_filtered_and_sorted_by_its_address(browser: Client) -> None:
    record(asset("broken_one", DAILY_2013), "2013-01-01", lambda n: "failed")
    asset("fine_one", DAILY_2013)
    assert "fine_one" not in browser.get("/assets/?show=failed").content.decode()
    assert "broken_one" in browser.get("/assets/?show=failed&sort=group").content.decode()
    assert "fine_one" not in browser.get("/assets/?q=broken").content.decode()
    assert "No matching assets" in browser.get("/assets/?q=nothing").content.decode()


def test_failed_partitions_of_an_earlier_definition_are_not_counted_as_failed(
    browser: Client,
) -> None:
    cut_anew = asset("cut_anew", DAILY_2013)
    record(cut_anew, "2013-01-01", lambda n: "failed")
    for address in ("/", "/assets/?show=failed"):
        assert "cut_anew" in browser.get(address).content.decode()
    hourly = PartitionDefinition.of(hours(date(2013, 1, 1), date(2014, 1, 1)).to_json())
    Asset.objects.filter(pk=cut_anew.pk).update(partition_definition=hourly)
    assert "No matching assets" in browser.get("/assets/?show=failed").content.decode()
    record_gateway_of_each_queue()
    assert "No failed partitions" in browser.get("/").content.decode()


def test_an_unpartitioned_asset_is_counted_with_the_other_assets(browser: Client) -> None:
    unpartitioned = asset("whole_one")
    PartitionCount.objects.create(
        asset=unpartitioned, identity=unpartitioned.identity, state="failed", count=1
    )
    for address in ("/", "/assets/?show=failed"):
        assert "whole_one" in browser.get(address).content.decode()
    browser.post("/assets/whole_one/materialize/")
    assert "1 queued" in browser.get("/assets/").content.decode()


@pytest.mark.parametrize("key", ["2013-01-05", "2013-12-31"])
def test_a_partition_that_was_never_made_has_a_page(browser: Client, key: str) -> None:
    asset("raw_flights", DAILY_2013)
    text = browser.get(f"/assets/raw_flights/partitions/{key}/").content.decode()
    assert "Not materialized" in text
    assert "Missing" in text


def test_a_key_that_names_no_partition_is_not_found(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.get("/assets/raw_flights/partitions/2014-01-01/")
    assert answer.status_code == 404
    assert "raw_flights has no partition 2014-01-01." in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/runs/99999/", "Run not found."),
        ("/backfills/99999/", "Backfill not found."),
        ("/assets/nothing/", "Asset not found."),
        ("/nowhere/", "Check the address."),
    ],
)
def test_a_missing_page_says_which_thing_is_missing(
    browser: Client, address: str, sentence: str
) -> None:
    answer = browser.get(address)
    assert answer.status_code == 404
    assert sentence in answer.content.decode()


def test_every_cell_of_a_grid_leads_to_a_page(browser: Client) -> None:
    asset("odd", PartitionBySequence(["a b", "ü", "50%", "x/y", "1+1"]))
    text = browser.get("/assets/odd/").content.decode()
    links = [link.split('"')[0] for link in text.split('href="partitions/')[1:]]
    assert len(links) == 5
    for link in links:
        assert browser.get(f"/assets/odd/partitions/{link}").status_code == 200, link


def test_a_day_in_a_calendar_is_named_by_its_key_and_state(browser: Client) -> None:
    record(asset("raw_flights", DAILY_2013), "2013-01-03")
    record(asset("hourly", hours(date(2024, 1, 1), date(2025, 1, 1))), "2024-01-03T07:00Z")
    for address, name in (
        ("/assets/raw_flights/?zoom=year&at=2013-01-01", "2013-01-03: materialized"),
        ("/assets/hourly/?zoom=year&at=2024-01-01", "2024-01-03: 1 materialized, 23 missing"),
        ("/assets/hourly/?zoom=year&at=2024-01-01", "2024-01-04: 24 missing"),
    ):
        answer = browser.get(address)
        assert f' aria-label="{name}"' in answer.content.decode()
        assert len(answer.content) < 150_000


def test_a_selection_is_counted_while_it_is_typed(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    address = "/assets/raw_flights/materialize/?selection="
    text = browser.get(address + "2013-02", headers={"hx-request": "true"}).content.decode()
    assert "28 partitions" in text
    assert "<html" not in text
    text = browser.get(address + "2013-99", headers={"hx-request": "true"}).content.decode()
    assert 'class="pointed"' in text


def test_materializing_one_partition_leads_to_its_run(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.post("/assets/raw_flights/materialize/", {"selection": "2013-01-05"})
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert browser.get(f"/runs/{run.pk}/").status_code == 200


@pytest.mark.parametrize("selection", ["", "nonsense", "2014-01-01", "2013-01-05..2013-01-01"])
def test_a_selection_that_is_wrong_is_refused_at_its_field(browser: Client, selection: str) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.post("/assets/raw_flights/materialize/", {"selection": selection})
    assert answer.status_code == 400
    assert "field-errors" in answer.content.decode()
    assert not Run.objects.exists()


def test_whoever_may_only_look_sees_no_buttons_and_is_refused() -> None:
    asset("raw_flights", DAILY_2013)
    client = Client()
    client.force_login(person("ulf"), backend="django.contrib.auth.backends.ModelBackend")
    assert "materialize/" not in client.get("/assets/raw_flights/").content.decode()
    answer = client.post("/assets/raw_flights/materialize/", {"selection": "2013-01-05"})
    assert answer.status_code == 403
    assert "needs the role operator" in answer.content.decode()
    assert not Run.objects.exists()


def backfill_form(**changes: str) -> dict[str, str]:
    """Return the fields that the trigger form sends."""
    return {
        "asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-31",
        "description": "why not",
        "max_active_runs": "3", "strategy": "", "existing": "missing_and_failed", "params": "",
    } | changes  # fmt: skip


def test_the_preview_says_what_a_backfill_comes_to_and_writes_nothing(browser: Client) -> None:
    record(asset("raw_flights", DAILY_2013), "2013-01-01..2013-01-10")
    text = browser.get(
        "/backfills/new/", backfill_form(), headers={"hx-request": "true"}
    ).content.decode()
    assert "<b>21</b> partitions in <b>21</b> runs" in text
    assert ">31</td>" in text
    assert ", partitioned in UTC)" in text
    assert not Backfill.objects.exists()


def test_starting_a_backfill_leads_to_its_page(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.post("/backfills/new/", backfill_form())
    backfill = Backfill.objects.get()
    assert answer["Location"] == f"/backfills/{backfill.pk}/"
    text = browser.get(answer["Location"]).content.decode()
    assert backfill.name in text
    assert "why not" in text
    assert "vera" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("asset", "nothing"),
        ("start", "not a date"),
        ("start", "2013-02-01"),
        ("end", "2099-01-01"),
        ("max_active_runs", "0"),
        ("max_active_runs", "many"),
        ("strategy", "fast"),
        ("params", "{"),
        ("params", '{"unknown": 1}'),
        ("existing", "some"),
    ],
)
def test_a_backfill_that_is_wrong_is_refused_at_its_field(
    browser: Client, field: str, value: str
) -> None:
    asset("raw_flights", DAILY_2013)
    answer = browser.post("/backfills/new/", backfill_form(**{field: value}))
    assert answer.status_code == 400
    assert "field-errors" in answer.content.decode()
    assert not Backfill.objects.exists()


def test_progress_is_polled_with_a_version_and_an_unchanged_one_is_nothing(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    browser.post("/backfills/new/", backfill_form())
    backfill = Backfill.objects.get()
    address = f"/backfills/{backfill.pk}/progress/"
    text = browser.get(address).content.decode()
    version = text.split("?version=")[1].split('"')[0]
    assert browser.get(f"{address}?version={version}").status_code == 204
    assert browser.get(f"{address}?version=old").status_code == 200


def test_a_backfill_is_canceled_from_a_page_that_asks_first(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    browser.post("/backfills/new/", backfill_form())
    backfill = Backfill.objects.get()
    address = f"/backfills/{backfill.pk}/cancel/"
    assert "Cancel backfill" in browser.get(address).content.decode()
    backfill.refresh_from_db()
    assert backfill.state == "creating"
    browser.post(address)
    backfill.refresh_from_db()
    assert backfill.state in ("canceling", "canceled")


@pytest.fixture
def talking_run(vera: User) -> Run:
    """Create a run that has printed three lines and goes on."""
    talker: Asset = asset("talker")
    assert talker.producer
    assert talker.producer.current_version
    run = Run.objects.create(
        group=RunGroup.objects.create(kind="request"), asset=talker, trigger="manual",
        queue="scheduled",
        producer_version=talker.producer.current_version, state=RunState.RUNNING, partition_count=1,
        started_at=timezone.now(),
    )  # fmt: skip
    attempt = RunAttempt.objects.create(
        run=run, number=1, token=uuid4(), started_at=timezone.now(),
    )  # fmt: skip
    for sequence, text in enumerate(("one <b>\n", "two\n", "three\n"), 1):
        RunLog.objects.create(attempt=attempt, sequence=sequence, text=text)
    return run


def test_a_log_is_followed_from_the_piece_that_the_reader_has(
    browser: Client, talking_run: Run
) -> None:
    page = browser.get(f"/runs/{talking_run.pk}/").content.decode()
    assert "one &lt;b&gt;" in page
    assert "?after=1.3" in page
    address = f"/runs/{talking_run.pk}/log/"
    assert browser.get(f"{address}?after=1.3").status_code == 204
    text = browser.get(f"{address}?after=1.1").content.decode()
    assert "two\nthree" in text
    assert "one" not in text
    assert browser.get(f"{address}?after=nonsense").status_code == 200


def test_polling_ends_when_the_run_has(browser: Client, talking_run: Run) -> None:
    for state in (RunState.PUBLISHING, RunState.SUCCEEDED):
        ended = {"ended_at": timezone.now()} if state == RunState.SUCCEEDED else {}
        Run.objects.filter(pk=talking_run.pk).update(state=state, **ended)
    assert browser.get(f"/runs/{talking_run.pk}/log/?after=1.3").status_code == 286
    assert browser.get(f"/runs/{talking_run.pk}/status/").status_code == 286


def test_the_whole_log_can_be_downloaded(browser: Client, talking_run: Run) -> None:
    answer = browser.get(f"/runs/{talking_run.pk}/log/file/")
    assert b"".join(answer.streaming_content) == b"one <b>\ntwo\nthree\n"  # type: ignore[attr-defined]


def test_a_page_that_is_open_learns_of_the_application_on_spark(
    browser: Client, talking_run: Run
) -> None:
    again = polled_address(browser.get(f"/runs/{talking_run.pk}/status/").content.decode())
    assert browser.get(again).status_code == 204
    RunAttempt.objects.update(application_id="app-7", application_ui="http://spark/app-7")
    assert "http://spark/app-7" in browser.get(again).content.decode()
