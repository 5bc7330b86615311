"""Failed backfills on the overview."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, AssetPartition, RunState
from backfills_app.models import Backfill
from backfills_app.queries import failed_backfills
from backfills_app.services import retry_failed
from backfills_app.services.advance.carrying import give_up
from slicewise_server.home import views
from tests.factories import DAILY_2013, asset
from tests.gateways import record_gateway_of_each_queue
from tests.pages.backfill_records import hold_partitions, runs_of, skip, written_backfill
from tests.pages.markup import page_at, polled_address, words_of
from tests.pages.run_records import recorded_run
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flights() -> Asset:
    record_gateway_of_each_queue()
    return asset("raw_flights", DAILY_2013)


def ended_backfill(user: User, succeeded: int = 0, failed: int = 0) -> Backfill:
    """Create a backfill of these numbers of days that has ended."""
    last = f"2013-01-{succeeded + failed:02}"
    backfill = written_backfill(user, end=last)
    runs_of(backfill, "succeeded", succeeded)
    runs_of(backfill, "failed", failed, error="no rows")
    return backfill


def attention(browser: Client, query: str = "") -> str:
    """Return the words of the section about problems that need a person."""
    section = page_at(browser, f"/{query}").split("Needs attention</h2>")[1].split("</section>")[0]
    return words_of(section)


def rows(browser: Client, query: str = "") -> list[str]:
    """Return the names of the failed backfills, in the order of the page."""
    return re.findall(r"ailed backfill (\S+)", attention(browser, query))


def change(backfill: Backfill, **values: Any) -> None:
    """Change columns of a backfill."""
    Backfill.objects.filter(pk=backfill.pk).update(**values)


def test_failed_backfills_need_attention_within_the_span(browser: Client, vera: User) -> None:
    assert "no stalled or failed backfills" in attention(browser)
    ended_backfill(vera, succeeded=2)
    assert "All clear" in attention(browser)
    partial = ended_backfill(vera, succeeded=2, failed=1)
    whole = ended_backfill(vera, failed=3)
    assert (partial.state, whole.state) == ("partially_failed", "failed")
    shown = attention(browser)
    assert "All clear" not in shown
    counts = "2 of 3 materialized, 1 failed . 20"
    assert f"Partially failed backfill {partial.name} : {counts}" in shown
    assert f"Failed backfill {whole.name} : 0 of 3 materialized, 3 failed ." in shown
    assert rows(browser) == [whole.name, partial.name]
    assert f'<a href="/backfills/{whole.pk}/">' in page_at(browser, "/")
    change(whole, run_end_date=timezone.now() - timedelta(days=3))
    assert rows(browser) == [partial.name]
    assert rows(browser, "?span=7d") == [partial.name, whole.name]
    change(partial, deleted=True)
    assert "All clear" in attention(browser)


def test_a_backfill_without_a_failed_run_is_listed(browser: Client, vera: User) -> None:
    given_up = written_backfill(vera)
    give_up(given_up.pk, "password=hush: no such table")
    skipping = written_backfill(vera, end="2013-01-02")
    skip(skipping, "upstream_missing", 2)
    assert rows(browser) == [skipping.name, given_up.name]
    shown = attention(browser)
    assert "0 of 31 materialized, 31 canceled. 20" in shown
    assert "no such table" in shown
    assert "hush" not in shown
    assert "0 of 2 materialized, 2 skipped. 20" in shown
    assert not re.search(r"\d failed", shown)


def test_a_retried_backfill_leaves_the_list(browser: Client, vera: User) -> None:
    failed = ended_backfill(vera, succeeded=1, failed=1)
    address = polled_address(page_at(browser, "/"))
    assert rows(browser) == [failed.name]
    retry_failed(failed, user=vera)
    assert rows(browser) == []
    assert browser.get(address).status_code == 200
    failed.refresh_from_db()
    runs_of(failed, "succeeded", 1)
    assert failed.state == "succeeded"
    assert "All clear" in attention(browser)


@pytest.mark.parametrize("reason", ["", "upstream_failed"])
def test_a_backfill_whose_partitions_were_materialized_since_leaves_the_list(
    browser: Client, flights: Asset, vera: User, reason: str
) -> None:
    failed = written_backfill(vera, end="2013-01-03")
    runs_of(failed, "succeeded", 1)
    if reason:
        skip(failed, reason, 2)
    else:
        runs_of(failed, "failed", 2, error="no rows")
    run = recorded_run(flights, RunState.RUNNING)
    hold_partitions(run, ["2013-01-02", "2013-01-03"])
    assert rows(browser) == []
    partitions = AssetPartition.objects.all()
    partitions.update(held_by=None, state="failed")
    assert rows(browser) == [failed.name]
    # Data from before the backfill is no answer to the request.
    before = failed.submitted_at - timedelta(hours=1)
    partitions.update(state="materialized", version=1, materialized_at=before)
    assert rows(browser) == [failed.name]
    partitions.filter(key="2013-01-02").update(materialized_at=timezone.now())
    assert rows(browser) == [failed.name]
    partitions.update(materialized_at=timezone.now())
    assert rows(browser) == []
    Asset.objects.update(active=False)
    partitions.update(state="failed")
    assert rows(browser) == []


def test_a_backfill_with_more_failures_than_are_looked_up_stays_listed(
    browser: Client, flights: Asset, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = ended_backfill(vera, failed=3)
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=flights,
            identity=flights.identity,
            key=f"2013-01-0{day}",
            state="materialized",
            version=1,
            materialized_at=timezone.now(),
        )
        for day in (1, 2, 3)
    )
    assert rows(browser) == []
    monkeypatch.setattr(failed_backfills, "_MOST_PARTITIONS", 2)
    assert rows(browser) == [failed.name]


def test_further_failed_backfills_are_behind_a_link(
    browser: Client, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_MOST_FAILED_BACKFILLS", 2)
    ended_backfill(vera, succeeded=1)
    failed = [ended_backfill(vera, succeeded=number % 2, failed=1) for number in range(4)]
    assert rows(browser) == [failed[3].name, failed[2].name]
    page = page_at(browser, "/")
    link = re.search(r'href="([^"]*)">\s*2 more failed backfills', page)
    assert link
    listed = page_at(browser, unescape(link[1]))
    numbers = [int(number) for number in re.findall(r'<tr id="backfill-(\d+)"', listed)]
    assert numbers == [row.pk for row in reversed(failed)]
    assert re.search(r'value="any_failed" selected>\s*Failed or partially failed', listed)


@pytest.mark.parametrize("is_skipped", [False, True], ids=["failed", "skipped"])
def test_a_bounded_number_of_partitions_is_read(
    vera: User, monkeypatch: pytest.MonkeyPatch, is_skipped: bool
) -> None:
    monkeypatch.setattr(failed_backfills, "_MOST_PARTITIONS", 5)
    day_ago = timezone.now() - timedelta(days=1)
    failed = written_backfill(vera, end="2013-08-01")
    skip(failed, "exists", 100)
    if is_skipped:
        skip(failed, "upstream_missing", 113)
    else:
        runs_of(failed, "failed", 113, error="no rows")
    for _ in range(3):
        ended_backfill(vera, succeeded=20)
        change(ended_backfill(vera, failed=1), run_end_date=day_ago - timedelta(days=2))

    def latest_and_rows_read() -> tuple[list[int], int]:
        with CaptureQueriesContext(connection) as statements:
            latest = failed_backfills.failed_backfills(day_ago, 5).latest
        assert len(statements) == (3 if latest else 1)
        return [row.pk for row in latest], rows_read(statements[0]["sql"])

    # The backfill, the asset with its definition, and the first partition without data.
    latest, number = latest_and_rows_read()
    assert latest == [failed.pk]
    assert number <= 6
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=failed.asset, identity=failed.asset.identity, key=key, state="materialized",
            version=1, materialized_at=timezone.now(),
        )
        for key in failed.assets.get().partitions.values_list("key", flat=True)
    )  # fmt: skip
    latest, number = latest_and_rows_read()
    assert latest == [failed.pk]
    # These four rows, six partitions of the backfill, and five of the asset.
    assert number <= 4 + 6 + 6
