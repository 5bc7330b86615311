"""Declared validations and validation results, on pages."""

import re
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from assets_app.models import (
    Asset,
    AssetPartition,
    Materialization,
    Run,
    RunAttempt,
    RunGroup,
    RunPartition,
    ValidationResult,
)
from partitions_app.templatetags.slicewise_pages import NONE
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at

pytestmark = pytest.mark.django_db
CHECK = {
    "kind": "not_null",
    "name": "not_null(shop)",
    "severity": "warn",
    "description": "No row has a null in 'shop'.",
    "columns": ["shop"],
}


@pytest.fixture
def sales(db: None) -> Asset:
    asset("raw")
    return asset(
        "sales",
        DAILY_2013,
        upstream={"raw": None},
        options={"inlet_validations": {"raw": [CHECK | {"severity": "error"}]}},
        outlet_validations=[CHECK],
        uri="file:///lake/sales",
    )


def run_of(flights: Asset, *results: dict[str, Any], state: str = "succeeded") -> Run:
    """Create a run that has ended, with validation results."""
    assert flights.producer is not None
    version, now = flights.producer.current_version, timezone.now()
    assert version is not None
    failed = state == "failed"
    run = Run.objects.create(
        group=RunGroup.objects.create(kind="manual"), producer_version=version, asset=flights,
        trigger="manual", queue="scheduled", state=state, partition_count=1, attempt_count=1,
        created_at=now, ended_at=now, error="sales does not pass it" if failed else "",
        error_kind="code" if failed else "",
    )  # fmt: skip
    attempt = RunAttempt.objects.create(
        run=run, number=1, token=uuid4(), started_at=now, ended_at=now,
        outcome=state,
    )  # fmt: skip
    shown = {"when": "outlet", "severity": "warn", "passed": True, "evaluated": True}
    ValidationResult.objects.bulk_create(
        ValidationResult(**{
            "attempt": attempt, "position": place, "asset": flights, "name": f"rule {place}",
            "description": f"Expected {place}.", "message": f"Seen {place}.", **shown, **result,
        })
        for place, result in enumerate(results)
    )  # fmt: skip
    return run


def test_the_page_of_a_run_shows_what_failed_first(browser: Client, sales: Asset) -> None:
    run = run_of(
        sales,
        {"when": "inlet", "asset": Asset.objects.get(name="raw")},
        {"passed": False, "message": "such as '<b>pankow</b>'"},
        {"passed": False, "severity": "error", "message": "see postgres://bob:secret@host/db"},
        {"passed": False, "severity": "error", "evaluated": False},
        state="failed",
    )
    page = page_at(browser, f"/runs/{run.pk}/")
    assert "Validations failed" in page
    assert "Nothing published." in compact(page)
    places = [page.index(f"Expected {place}.") for place in (2, 3, 1, 0)]
    assert places == sorted(places)
    for words in ("Passed", "Warning</span>", "Not evaluated", "Input, before the run:"):
        assert words in page
    assert "such as &#x27;&lt;b&gt;pankow&lt;/b&gt;&#x27;" in page
    assert "secret" not in page


@pytest.mark.parametrize(
    ("version", "made_at", "text"),
    [
        (2, datetime(2020, 1, 1, tzinfo=UTC), "Nothing published; previous data kept."),
        (0, None, "Nothing published."),
        # A later run has written the data.
        (3, datetime(9999, 1, 1, tzinfo=UTC), "Nothing published."),
    ],
)
def test_previous_data_is_told_of_only_where_there_is_some(
    browser: Client, sales: Asset, version: int, made_at: datetime | None, text: str
) -> None:
    run = run_of(sales, {"passed": False, "severity": "error"}, state="failed")
    partition = AssetPartition.objects.create(
        asset=sales, identity=sales.identity, key="2013-01-01", state="failed", last_run=run,
        version=version, materialized_at=made_at,
    )  # fmt: skip
    RunPartition.objects.create(run=run, partition=partition, position=0, state="failed")
    assert f">{text}</p>" in compact(page_at(browser, f"/runs/{run.pk}/"))


def test_a_run_without_validations_says_nothing_of_them(browser: Client, sales: Asset) -> None:
    page = page_at(browser, f"/runs/{run_of(sales, state='failed').pk}/")
    assert "Validations" not in page
    assert "Error in asset code" in page


def test_the_page_of_a_partition_shows_what_its_last_run_saw(browser: Client, sales: Asset) -> None:
    run_of(sales, {"message": "Seen by an earlier run."})
    AssetPartition.objects.create(
        asset=sales, identity=sales.identity, key="2013-01-01", state="materialized", version=2,
        last_run=run_of(sales, {"passed": False}),
    )  # fmt: skip
    page = page_at(browser, "/assets/sales/partitions/2013-01-01/")
    assert "Seen 0." in page
    assert "Seen by an earlier run." not in page


def test_each_run_in_the_history_of_a_partition_tells_the_outcome_of_its_validations(
    browser: Client, sales: Asset
) -> None:
    made = run_of(sales, {"passed": True}, {"passed": True}, {"passed": False})
    failed = run_of(sales, {"passed": False, "severity": "error"}, state="failed")
    plain = run_of(sales)
    partition = AssetPartition.objects.create(
        asset=sales, identity=sales.identity, key="2013-01-01", state="materialized", version=2,
        last_run=plain,
    )  # fmt: skip
    for run in (made, failed, plain):
        RunPartition.objects.create(run=run, partition=partition, position=0, state=run.state)
    for version, run in enumerate((made, plain), 1):
        Materialization.objects.create(
            partition=partition, version=version, run=run, producer_version=run.producer_version,
            created_at=timezone.now(), attempt=run.attempts.get(),
        )  # fmt: skip
    with CaptureQueriesContext(connection) as captured:
        page = compact(page_at(browser, "/assets/sales/partitions/2013-01-01/"))
    reads = [query for query in captured if "validationresult" in query["sql"].lower()]
    assert len(reads) == 2
    materialized, listed = page.split(">Materializations<")[1].split(">Runs<")
    assert f'href="/runs/{made.pk}/" title="Validations of run {made.pk}"' in materialized
    assert f"<td>{NONE}</td>" in materialized
    assert re.search(r"</svg>Warning</span>1</span><span>.*?Passed</span>2</span>", materialized)
    assert f'title="Validations of run {failed.pk}"' in listed
    assert re.search(r"</svg>Failed</span>1</span></a>", listed)


def test_the_definition_lists_what_is_declared(browser: Client, sales: Asset) -> None:
    page = page_at(browser, "/assets/sales/?tab=definition")
    assert page.count("No row has a null in &#x27;shop&#x27;.") == 2
    assert "Input, before a run:" in page
    assert "Output, before publication:" in page


def test_an_asset_whose_last_run_warned_says_so_in_the_list(browser: Client, sales: Asset) -> None:
    run = run_of(sales, {"passed": False})
    with CaptureQueriesContext(
        connection,
    ) as warned:
        page = page_at(browser, "/assets/")
    assert f'href="/runs/{run.pk}/"' in page
    assert "Validation warning" in page
    assert "Validation warning" in page_at(browser, "/assets/sales/")
    run_of(sales, {"passed": True})
    with CaptureQueriesContext(connection) as fine:
        page = page_at(browser, "/assets/")
    assert "Validation warning" not in page
    assert len(warned) == len(fine)
