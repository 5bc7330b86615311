"""The search in owners, tags, selections and errors."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import slicewise
from assets_app.models import Asset, Bundle, BundleVersion, Run
from slicewise_server.home import search_failures
from tests.factories import DAY_BY_AIRPORT, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run

pytestmark = pytest.mark.django_db
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
