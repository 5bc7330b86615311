"""The search in owners, tags, selections and errors."""

from collections.abc import Sequence
from copy import copy
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

import slicewise
from assets_app.models import Asset, Bundle, BundleVersion, Run, RunState
from assets_app.queries import declared_facts, run_ids, shown_errors
from assets_app.queries.run_ids import IdRange, ids_between
from assets_app.views import run_filters
from assets_app.views.run_filters import matching_runs, sorted_runs
from slicewise.partitions.windows import Windows
from slicewise.texts import masked_text
from slicewise_server.home import search_failures
from slicewise_server.web.listing import version_of
from tests.factories import DAY_BY_AIRPORT, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_partition, failed_run, recorded_run
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db
_COPIED = (
    "asset_id", "group_id", "producer_version_id", "trigger", "queue", "state", "partition_count",
    "ended_at",
)  # fmt: skip
HOURLY = slicewise.PartitionByInterval("@hourly", start="2026-01-01")
BERLIN = slicewise.PartitionByInterval("@hourly", start="2026-01-01", timezone="Europe/Berlin")


@pytest.fixture
def clicks(db: None) -> Asset:
    """Create an asset with owners and tags."""
    return asset("clicks", HOURLY, owners=["web-team"], tags=["tier-1"])


def found(browser: Client, text: str) -> str:
    return compact(page_at(browser, f"/search/?q={text}"))


def test_owners_and_tags_lead_to_their_assets(clicks: Asset, browser: Client) -> None:
    assert 'href="/assets/?owner=web-team"' in found(browser, "WEB-t")
    assert 'href="/assets/?tag=tier-1"' in found(browser, "tier")
    Asset.objects.update(active=False)
    assert "Nothing found" in found(browser, "web-t")


@pytest.mark.parametrize("text", ["2026-11-25T15", "2026-11-25T15:", "2026-11-25T15:00"])
def test_the_hour_of_a_key_leads_to_the_partition(
    clicks: Asset, browser: Client, text: str
) -> None:
    page = found(browser, f"clicks {text}")
    assert "/assets/clicks/partitions/2026-11-25T15:00Z/" in page.replace("%3A", ":")


def test_the_hour_of_a_key_is_in_the_zone_of_the_asset(browser: Client) -> None:
    asset("orders", BERLIN)
    page = found(browser, "orders 2026-11-25T15")
    assert "/assets/orders/partitions/2026-11-25T15:00" in page.replace("%3A", ":")


def test_a_selection_leads_to_the_grid(clicks: Asset, browser: Client) -> None:
    asset("by_airport", DAY_BY_AIRPORT)
    page = found(browser, "clicks 2026-11-25")
    assert 'href="/assets/clicks/?selection=2026-11-25T00' in page.replace("%3A", ":")
    assert "24 partitions" in page
    page = found(browser, "by_airport airport=JFK date=2013-03-05")
    assert "/assets/by_airport/partitions/2013-03-05" in page
    for words in ("clicks nonsense", "clicks 2026-99", "clicks 1999-01-01"):
        assert "Nothing found" in found(browser, words)


def test_errors_of_recent_failed_runs_are_grouped(clicks: Asset, browser: Client) -> None:
    for number in range(3):
        error = f"line {number}\nKafka broker {number}: token=s3cret refused"
        run = failed_run(clicks, error=error)
    Run.objects.update(ended_at=timezone.now())
    page = found(browser, "kafka")
    assert f'href="/runs/{run.pk}/"' in page
    assert page.count("more like it") == 1
    assert "and 2 more like it: Kafka broker" in page
    assert "/runs/?state=failed&amp;error=kafka&amp;ended_after=" in page
    assert "s3cret" not in page
    assert "Nothing found" in found(browser, "s3cret")
    Run.objects.update(ended_at=timezone.now() - timedelta(days=8))
    assert "Nothing found" in found(browser, "kafka")


def test_only_the_latest_failed_runs_are_read(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_run(clicks, error="kafka is away")
    failed_run(clicks, error="no table")
    Run.objects.filter(error="no table").update(ended_at=timezone.now())
    Run.objects.filter(error="kafka is away").update(ended_at=timezone.now() - timedelta(hours=1))
    assert "kafka is away" in found(browser, "kafka")
    monkeypatch.setattr(search_failures, "_MOST_RUNS", 1)
    assert "Nothing found" in found(browser, "kafka")


def test_a_search_of_only_the_latest_failed_runs_says_so(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in ("kafka is away", "no table"):
        failed_run(clicks, error=error, ended_at=timezone.now())
    page = found(browser, "table")
    assert "Errors of failed runs, last 7 days" in page
    assert "/runs/?state=failed" not in found(browser, "absent")
    monkeypatch.setattr(search_failures, "_MOST_RUNS", 1)
    page = found(browser, "table")
    assert "Errors of the latest 1 failed runs, last 7 days" in page
    assert "Nothing found" not in page
    page = found(browser, "kafka")
    assert "Errors of the latest 1 failed runs, last 7 days" in page
    assert "/runs/?state=failed&amp;error=kafka&amp;ended_after=" in page
    assert "No error with this text" in page


def test_the_list_of_runs_by_error_does_not_find_masked_secrets(
    clicks: Asset, browser: Client
) -> None:
    run = failed_run(clicks, error="Kafka: password=hunter2\nKeyError: 'dest'")
    link = f'href="/runs/{run.pk}/"'
    for text in ("kafka", "PASSWORD", "keyerror: 'd"):
        assert link in page_at(browser, f"/runs/?error={text}"), text
        assert link in page_at(browser, f"/runs/listed/?error={text}"), text
    for text in ("password=h", "hunter2", "unter"):
        assert link not in page_at(browser, f"/runs/?error={text}"), text
        assert "No matching runs" in page_at(browser, f"/runs/?by=request&error={text}"), text


def test_the_list_of_runs_searches_the_newest_errors_and_says_so(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = "Only the newest 2 errors are searched"
    old, *_ = [failed_run(clicks, error=f"kafka {n}: password=hunter2") for n in range(3)]
    failed_run(asset("orders", HOURLY), error="no table")
    recorded_run(clicks, RunState.SUCCEEDED, ended_at=timezone.now())
    link = f'href="/runs/{old.pk}/"'
    page = page_at(browser, "/runs/?error=kafka")
    assert link in page
    assert "errors are searched" not in page
    monkeypatch.setattr(shown_errors, "MOST_SEARCHED", 2)
    # The notice depends on no text: masked texts would be told.
    for text in ("kafka", "hunter2", "absent"):
        page = compact(page_at(browser, f"/runs/?error={text}"))
        assert notice in page
        assert link not in page
    # The other filters choose the errors that are searched.
    for query in ("asset=clicks", f"id={old.pk}", "asset=orders", "by=request&asset=orders"):
        is_cut = query == "asset=clicks"
        assert (notice in compact(page_at(browser, f"/runs/?error=kafka&{query}"))) is is_cut
    assert link in page_at(browser, f"/runs/listed/?error=kafka&id={old.pk}")
    assert notice not in compact(page_at(browser, "/runs/?error=no&state=succeeded"))


def test_the_list_of_runs_examines_the_newest_errors_of_all_runs_and_says_so(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = "Only the newest 5 errors of all runs are searched"
    monkeypatch.setattr(shown_errors, "MOST_SEARCHED", 2)
    monkeypatch.setattr(shown_errors, "MOST_EXAMINED", 5)
    orders = asset("orders", HOURLY)
    old = failed_run(orders, error="kafka: password=hunter2")
    for _ in range(4):
        failed_run(clicks, error="kafka down")
    old_link = f'href="/runs/{old.pk}/"'
    page = compact(page_at(browser, "/runs/?error=kafka&asset=orders"))
    assert old_link in page
    assert "errors are searched" not in page
    assert "of all runs are searched" not in page
    for _ in range(30):
        failed_run(clicks, error="kafka down")
    # The notice depends on no text: masked texts would be told.
    for text in ("kafka", "hunter2", "absent"):
        page = compact(page_at(browser, f"/runs/?error={text}&asset=orders"))
        assert notice in page
        assert old_link not in page
    # A smaller limit is the one that the page names.
    for query in ("", "&asset=clicks"):
        page = compact(page_at(browser, f"/runs/?error=kafka{query}"))
        assert "Only the newest 2 errors are searched" in page
        assert notice not in page
    with CaptureQueriesContext(connection) as statements:
        assert not list(matching_runs(QueryDict("error=kafka&asset=orders")).rows)
    # The errors of all 35 runs, each with its asset, would be 70 rows in two statements each.
    assert sum(rows_read(statement["sql"]) for statement in statements) < 35


def test_filters_that_lead_to_runs_search_errors_of_any_age(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_errors, "MOST_EXAMINED", 5)
    now = timezone.now()
    old = failed_run(asset("orders", HOURLY), error="kafka down")
    Run.objects.update(created_at=now - timedelta(days=3), ended_at=now - timedelta(days=3))
    for _ in range(8):
        failed_run(clicks, error="kafka down")
    before = f"{now - timedelta(days=1):%Y-%m-%dT%H:%M}"
    for query in (
        f"id={old.pk}", f"group={old.group_id}", f"created_before={before}",
        f"ended_before={before}&asset=orders",
    ):  # fmt: skip
        page = compact(page_at(browser, f"/runs/?error=kafka&{query}"))
        assert f'href="/runs/{old.pk}/"' in page, query
        assert "are searched" not in page, query


def test_the_list_of_runs_names_no_limit_where_all_errors_of_a_span_are_searched(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = "Only the newest 5 errors of all runs are searched"
    monkeypatch.setattr(shown_errors, "MOST_EXAMINED", 5)
    for _ in range(8):
        failed_run(clicks, error="kafka down")
    assert notice in compact(page_at(browser, "/runs/?error=kafka&since=1h"))
    Run.objects.update(created_at=timezone.now() - timedelta(hours=2))
    failed_run(clicks, error="kafka down")
    assert notice not in compact(page_at(browser, "/runs/?error=kafka&since=1h"))
    assert notice in compact(page_at(browser, "/runs/?error=kafka&since=24h"))


def test_a_filter_by_asset_masks_no_errors_of_other_assets(
    clicks: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = failed_run(asset("smart", HOURLY), error="kafka down, 30")
    for number in range(30):
        failed_run(clicks, error=f"kafka down, {number}")
    masked = counted_masks(monkeypatch)
    found = matching_runs(QueryDict("error=kafka&asset=sma")).rows
    assert [row.pk for row in found] == [run.pk]
    assert masked == ["kafka down, 30"]


def counted_masks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets each error that is masked."""
    masked: list[str] = []

    def mask(text: str) -> str:
        masked.append(text)
        return masked_text(text)

    shown_errors.shown_error.cache_clear()
    monkeypatch.setattr(shown_errors, "masked_text", mask)
    return masked


@pytest.mark.parametrize("search", ["list", "header"])
def test_a_search_masks_the_same_errors_whatever_the_text(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    """A search that masks fewer errors, and takes less time, would tell a wrong guess."""
    errors = {f"kafka {number}: password=hunter2" for number in range(5)}
    for error in errors:
        failed_run(clicks, error=error)
    address = {"list": "/runs/?error=", "header": "/search/?q="}[search]
    for text in ("password=h", "password=x", "kafka"):
        masked = counted_masks(monkeypatch)
        page_at(browser, address + text)
        assert errors <= set(masked), text


def test_masks_are_computed_for_the_newest_errors_alone(
    clicks: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_errors, "MOST_SEARCHED", 5)
    for number in range(30):
        failed_run(clicks, error=f"password=hunter{number}")
    masked = counted_masks(monkeypatch)
    for _ in range(2):
        assert not list(matching_runs(QueryDict("error=hunter")).rows)
    # The second search remembers.
    assert masked == [f"password=hunter{number}" for number in range(29, 24, -1)]


@pytest.mark.parametrize("order", ["", "oldest", "longest"])
def test_a_search_of_few_errors_reads_no_runs_without_errors(clicks: Asset, order: str) -> None:
    for error in ("kafka down", "no table"):
        failed_run(clicks, error=error)
    run = recorded_run(clicks, RunState.SUCCEEDED, ended_at=timezone.now())
    succeeded = Run(**{field: getattr(run, field) for field in _COPIED})
    Run.objects.bulk_create([copy(succeeded) for _ in range(300)])
    query = QueryDict(f"error=kafka&sort={order}")
    with CaptureQueriesContext(connection) as statements:
        matching = matching_runs(query)
        assert len(sorted_runs(matching.rows, query)) == 1
    assert not matching.limit_texts
    # The bound is read once.
    assert len(statements) == 2
    # The runs, and the rows of the asset, the group and the definition beside these.
    assert sum(rows_read(statement["sql"]) for statement in statements) < 20


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("GET https://api.example.com/v1?date=2024-01-01 failed: timeout", "timeout"),
        ("HTTPError: 503 for url: https://api.example.com/v1?date=1", "api.example.com"),
        ("connection to postgres://me:hunter2@db/x failed: too many", "db/x failed: too many"),
        ("max_token=None, dtype mismatch in column dest", "DTYPE"),
        ("Kafka: password=hunter2, broker down", "password=***, broker"),
    ],
)
def test_the_text_that_pages_show_of_an_error_is_found_beside_a_secret(
    clicks: Asset, browser: Client, error: str, text: str
) -> None:
    run = failed_run(clicks, error=error)
    assert f'href="/runs/{run.pk}/"' in page_at(browser, f"/runs/?{urlencode({'error': text})}")


def test_a_range_of_ids_has_all_runs_of_a_span(
    clicks: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_ids, "_SLACK", timedelta(0))
    begin = timezone.now() - timedelta(days=30)
    runs = [failed_run(clicks) for _ in range(20)]
    Run.objects.filter(pk__in=[run.pk for run in runs[3:9]]).delete()
    kept = [run.pk for run in (*runs[:3], *runs[9:])]
    for day, pk in enumerate(kept):
        Run.objects.filter(pk=pk).update(created_at=begin + timedelta(days=day))
    for first in range(-1, 16):
        for stop in range(first, 16):
            days = [begin + timedelta(days=day, hours=-1) for day in (first, stop)]
            found = ids_between(days[0], days[1]).of(Run.objects.order_by("pk"))
            assert list(found.values_list("pk", flat=True)) == kept[max(first, 0) : max(stop, 0)]
    assert ids_between(None, None) == IdRange()
    Run.objects.all().delete()
    assert not ids_between(begin, timezone.now()).of(Run.objects.all())


@pytest.mark.parametrize("offset", ["%2B16:00", "-23:59", "%2B14:00"])
def test_an_instant_with_any_offset_is_understood(
    clicks: Asset, browser: Client, offset: str
) -> None:
    run = failed_run(clicks, error="kafka down")
    for name, is_shown in (("created_after", True), ("created_before", False)):
        page = page_at(browser, f"/runs/?error=kafka&{name}=2026-01-01T00:00{offset}")
        assert (f'href="/runs/{run.pk}/"' in page) is is_shown


def test_a_filter_within_a_request_examines_the_newest_errors_of_the_request(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_errors, "MOST_EXAMINED", 3)
    first = failed_run(clicks, error="kafka down")
    for _ in range(5):
        failed_run(clicks, error="kafka down")
    notice = "Only the newest 3 errors of all runs of the request are searched"
    address = f"/runs/?error=kafka&asset=cli&group={first.group_id}"
    page = compact(page_at(browser, address))
    assert f'href="/runs/{first.pk}/"' in page
    assert notice not in page
    Run.objects.update(group=first.group_id)
    page = compact(page_at(browser, address))
    assert f'href="/runs/{first.pk}/"' not in page
    assert notice in page
    assert page_at(browser, "/runs/?error=kafka&asset=cli&group=none")


def test_many_ids_and_partitions_are_cut_and_the_page_says_so(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_filters, "_MOST_PARTITIONS", 1)
    monkeypatch.setattr(run_filters, "_MOST_IDS", 2)
    key = "2026-01-05T00:00Z"
    pages = []
    for name in ("orders", "payments"):
        failed_partition(asset(name, HOURLY), key)
        pages.append(compact(page_at(browser, f"/runs/?partition={key}&error=rows")))
    notice = "Only the newest 1 partitions with this key are searched"
    assert [notice in page for page in pages] == [False, True]
    assert "Only the first 2 ids are searched" in page_at(browser, "/runs/?id=1,2,3")
    assert "are searched" not in page_at(browser, "/runs/?id=1,2")


def test_the_version_of_a_polled_list_tells_no_masked_secret() -> None:
    versions = set()
    for key in ("one" * 20, "two" * 20):
        with override_settings(SECRET_KEY=key):
            versions.add(version_of([1, "password=hunter2"]))
    assert len(versions) == 2


def test_owners_and_tags_are_searched_before_the_list_is_cut(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("orders", HOURLY, owners=["accounting"], tags=["daily"])
    monkeypatch.setattr(declared_facts, "MOST_OFFERED", 1)
    assert 'href="/assets/?owner=web-team"' in found(browser, "web-t")
    assert 'href="/assets/?tag=tier-1"' in found(browser, "tier")


def test_a_large_selection_with_excluded_windows_is_not_counted(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[int, int]] = []
    excluded = Windows.excluded

    def noted(windows: Windows, first: int, stop: int) -> Sequence[int]:
        counted.append((first, stop))
        return excluded(windows, first, stop)

    monkeypatch.setattr(Windows, "excluded", noted)
    minutes = slicewise.PartitionByInterval(
        "* * * * *", start="2000-01-01", end="2025-01-01", exclude=["* * * * 6,0"]
    )
    for number in range(3):
        asset(f"minutes_{number}", minutes)
    page = found(browser, "minutes 2000..2024")
    # 1 January 2000 is a Saturday.
    assert page.count("at most 13,147,200 partitions") == 3
    assert "/assets/minutes_0/?selection=2000-01-03T00" in page.replace("%3A", ":")
    assert sum(stop - first for first, stop in counted) < 1_000_000
    assert "1,440 partitions" in found(browser, "minutes 2024-01-05..2024-01-07")
    assert "Nothing found" in found(browser, "minutes 2024-01-06")


def test_a_long_list_of_partitions_is_looked_up_for_fewer_assets(browser: Client) -> None:
    for number in range(4):
        asset(f"hours_{number}", HOURLY)
    days = [f"2026-01-{day:02}" for day in range(1, 26)]
    assert found(browser, f"hours {','.join(days[:3])}").count("72 partitions") == 4
    assert found(browser, f"hours {','.join(days)}").count("600 partitions") == 2


def test_definition_files_with_errors_are_found_by_path_and_error(
    clicks: Asset, browser: Client
) -> None:
    bundle = Bundle.objects.get()
    error = {
        "path": "marketing.py", "line": 3, "message": "No module named 'adwords' password=s3cret",
        "traceback": "",
    }  # fmt: skip
    bundle.current_version = BundleVersion.objects.create(
        bundle=bundle, digest="e" * 64, import_errors=[error]
    )
    bundle.save()
    for text in ("marketing", "adwords"):
        page = found(browser, text)
        assert "Definition files with errors" in page
        assert 'href="/bundles/">marketing.py</a>' in page
    assert "s3cret" not in page
    assert "Nothing found" in found(browser, "s3cret")
    Bundle.objects.update(current_version=None, error="Repository unreachable")
    assert "Definition files with errors" in found(browser, "unreachable")


def test_a_search_takes_few_statements(clicks: Asset, browser: Client) -> None:
    for number in range(12):
        failed_run(asset(f"clicks_{number}", HOURLY), error="clicks failed")
    Run.objects.update(ended_at=timezone.now())
    found(browser, "clicks")
    with CaptureQueriesContext(connection) as queries:
        found(browser, "clicks 2026-11-25")
    assert len(queries) <= 14
