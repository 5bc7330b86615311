"""The tabs of an asset: settings, validations, and versions of the code."""

import re

import pytest
from django.test import Client

from assets_app.models import Asset, FreshnessWatch, ProducerVersion, RunAttempt, ValidationResult
from tests.factories import DAILY_2013, asset, external
from tests.gateways import record_attempt, record_gateway
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run

pytestmark = pytest.mark.django_db


def changed(of: Asset, source: str, digest: str) -> ProducerVersion:
    """Put a further version of the code in force."""
    assert of.producer
    assert of.producer.current_version
    version = of.producer.current_version
    version.pk, version.digest, version.source = None, digest * 64, source
    version.save()
    of.producer.save()
    return version


def test_settings_are_those_of_the_code_in_force(browser: Client) -> None:
    options = {
        "retries": 3, "retry_delay": 90.0, "timeout": 3600.0, "memory": 2**30, "max_active_runs": 2,
        "spark_conf": {"spark.sql.shuffle.partitions": "7"}, "depends_on_past": True,
    }  # fmt: skip
    asset("raw_flights", DAILY_2013, options=options, params={"password": "hunter2"})
    page = compact(page_at(browser, "/assets/raw_flights/?tab=settings"))
    for label, text in {
        "Retries": "3, after 1 min 30 s, doubled each time, up to 1 h",
        "Timeout": "1 h", "Memory limit": "1,024 MiB",
        "Max active runs": "2", "Depends on past": "yes", "Engine": "connect",
        "Spark": "spark.sql.shuffle.partitions=7",
    }.items():  # fmt: skip
        assert re.search(rf"<dt>{label}</dt><dd[^>]*>{re.escape(text)}</dd>", page), label
    assert "hunter2" not in page
    external("told", DAILY_2013)
    assert "No settings" in page_at(browser, "/assets/told/?tab=settings")


@pytest.mark.parametrize(
    ("retries", "seconds", "text"),
    [(0, 60.0, "0"), (1, 60.0, "1, after 1 min"), (5, 3600.0, "5, after 1 h"),
     (2, 0.0, "2, at once")],
)  # fmt: skip
def test_pauses_that_do_not_grow_are_not_said_to_double(
    retries: int, seconds: float, text: str, browser: Client
) -> None:
    asset("raw_flights", DAILY_2013, options={"retries": retries, "retry_delay": seconds})
    page = compact(page_at(browser, "/assets/raw_flights/?tab=settings"))
    assert re.search(rf"<dt>Retries</dt><dd[^>]*>{text}</dd>", page)


def test_settings_tell_when_a_partition_is_late_and_overdue(browser: Client) -> None:
    def freshness(name: str) -> str:
        page = compact(page_at(browser, f"/assets/{name}/?tab=settings"))
        return page.partition("<dt>Freshness</dt>")[2].partition("</dd>")[0].partition(">")[2]

    for name, declared in {
        "clicks": {"within": 1800, "warn": None}, "revenue": {"within": 10_800, "warn": 7_200},
    }.items():  # fmt: skip
        watched = asset(name, DAILY_2013)
        FreshnessWatch.objects.create(
            asset=watched, identity=watched.identity, freshness=declared,
            watched_until=watched.activated_at,
        )  # fmt: skip
    asset("orders", DAILY_2013)
    assert freshness("clicks") == "overdue 30 min after the end of the time window"
    assert freshness("revenue") == "late 2 h, overdue 3 h after the end of the time window"
    assert freshness("orders") == "none"


def test_a_run_shows_the_limits_that_its_code_declares(browser: Client) -> None:
    options = {
        "timeout": 3600.0, "memory": 2**30,
        "spark_conf": {"spark.executor.cores": "2", "spark.password": "hunter2"},
    }  # fmt: skip
    run = failed_run(asset("raw_flights", DAILY_2013, options=options))
    page = compact(page_at(browser, f"/runs/{run.pk}/"))
    assert re.search(r"<dt>Memory limit</dt><dd[^>]*>1,024 MiB</dd>", page)
    assert "<dt>Timeout</dt><dd>1 h</dd>" in page
    assert "spark.executor.cores=2" in page
    assert "hunter2" not in page
    unlimited = failed_run(asset("plain", DAILY_2013))
    page = compact(page_at(browser, f"/runs/{unlimited.pk}/"))
    assert re.search(r"<dt>Memory limit</dt><dd[^>]*>the worker.{1,6}s limit</dd>", page)
    assert "<dt>Timeout</dt><dd>none</dd>" in page


def test_the_difference_of_two_versions_is_shown_with_its_secrets_masked(browser: Client) -> None:
    flights = asset("raw_flights", DAILY_2013)
    assert "Compare versions" not in page_at(browser, "/assets/raw_flights/?tab=definition")
    older = changed(flights, "def f():\n    return 1\n    # password=hunter2\n", "a")
    newer = changed(flights, "def f():\n    return 2\n    # password=hunter2\n", "b")
    page = page_at(browser, "/assets/raw_flights/?tab=definition")
    assert "Compare versions" in page
    names = f"older={older.digest[:12]}&newer={newer.digest[:12]}"
    page = compact(page_at(browser, f"/assets/raw_flights/?tab=definition&{names}"))
    assert re.search(r'class="removed">- *return 1<', page)
    assert re.search(r'class="added">\+ *return 2<', page)
    assert "hunter2" not in page
    same = f"older={older.digest[:12]}&newer={older.digest[:12]}"
    page = page_at(browser, f"/assets/raw_flights/?tab=definition&{same}")
    assert "The source is the same." in page
    assert page_at(browser, "/assets/raw_flights/?tab=definition&older=x&newer=y")


def test_changes_of_the_declaration_are_shown_beside_the_source(browser: Client) -> None:
    flights = asset("raw_flights", DAILY_2013, params={"password": "hunter2"})
    source = "def f(): ..."
    older, newer = changed(flights, source, "a"), changed(flights, source, "b")
    newer.definition = newer.definition | {
        "schedule": {"kind": "cron", "expression": "@weekly"}, "retries": 7, "line": 99,
        "params": {"password": "hunter3"},
    }  # fmt: skip
    newer.save()
    names = f"?tab=definition&older={older.digest[:12]}&newer={newer.digest[:12]}"
    page = compact(page_at(browser, f"/assets/raw_flights/{names}"))
    assert "The source is the same." in page
    assert re.search(r'class="added">\+ *&quot;expression&quot;: &quot;@weekly&quot;', page)
    assert re.search(r'class="added">\+ *&quot;retries&quot;: 7', page)
    assert "&quot;line&quot;" not in page
    assert "hunter" not in page
    same = f"?tab=definition&older={older.digest[:12]}&newer={older.digest[:12]}"
    page = page_at(browser, f"/assets/raw_flights/{same}")
    assert "Schedule, partitions and options are the same." in page
    # A list of thousands of values hides no change after the list, and none of its end.
    for version, last in ((older, "y"), (newer, "z")):
        version.definition = version.definition | {"keys": [*map(str, range(3000)), last]}
        version.save()
    page = compact(page_at(browser, f"/assets/raw_flights/{names}"))
    assert re.search(r'class="added">\+ *&quot;expression&quot;: &quot;@weekly&quot;', page)
    assert re.search(r'class="added">\+… [\d,]+ more lines, SHA-256', page)


def test_results_of_validations_are_listed_newest_first(browser: Client) -> None:
    flights = asset("raw_flights", DAILY_2013)
    assert "No validations" in page_at(browser, "/assets/raw_flights/?tab=validations")
    flights.outlet_validations = [
        {"name": "enough", "description": "at least 10 rows", "severity": "error"}
    ]
    flights.save()
    assert "No results yet" in page_at(browser, "/assets/raw_flights/?tab=validations")
    worker, runs = record_gateway("fine"), [failed_run(flights) for _ in range(2)]
    for run, passed in zip(runs, (False, True), strict=True):
        record_attempt(worker, run)
        ValidationResult.objects.create(
            attempt=RunAttempt.objects.get(run=run), position=0, asset=flights, when="outlet",
            name="enough", severity="error", passed=passed, evaluated=True, message="9 rows",
        )  # fmt: skip
    page = compact(page_at(browser, "/assets/raw_flights/?tab=validations"))
    assert page.index(f'href="/runs/{runs[1].pk}/"') < page.index(f'href="/runs/{runs[0].pk}/"')
    assert page.index("Passed") < page.index("Failed</span>")
