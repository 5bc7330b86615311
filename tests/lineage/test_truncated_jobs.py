"""Edges beyond the most that one request adds: their number is shown, until a job has fewer."""

from __future__ import annotations

from datetime import timedelta
from time import thread_time
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts_app.models import User
from assets_app.models import Asset
from slicewise_server.lineage.forgetting_lineage import forget_lineage
from slicewise_server.lineage.models import LineageEdge, TruncatedJob
from tests.factories import external
from tests.lineage.received_events import ADDRESS, completed, dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def raw(db: None) -> Asset:
    return external("raw", uri="s3://lake/raw", canonical_uri="s3://lake/raw")


@pytest.fixture
def browser(vera: User) -> Client:
    client = Client()
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    return client


def others(number: int) -> list[dict[str, Any]]:
    return [dataset(f"topic-{place}", "kafka://broker:9092") for place in range(number)]


def event(*, inputs: int = 0, outputs: int = 0, run: int = 1, job: str = "orders") -> Any:
    """Return an event whose first input and first output are the asset."""
    return completed(
        dataset("raw"), *others(outputs), inputs=[dataset("raw"), *others(inputs)],
        run=str(UUID(int=run)), job={"namespace": "imports", "name": job},
    )  # fmt: skip


def unstored_edges(api: APIClient, body: Any) -> int:
    answer = api.post(ADDRESS, body, format="json")
    assert answer.status_code == 200, answer.content
    number: int = answer.json().get("edges_left_out", 0)
    return number


def test_the_answer_and_the_page_say_how_many_edges_of_a_job_are_left_out(
    api: APIClient, browser: Client, raw: Asset
) -> None:
    assert unstored_edges(api, event(inputs=700, outputs=800)) == 500
    assert LineageEdge.objects.count() == 1_000
    text = " ".join(browser.get("/lineage/?tab=edges").content.decode().split())
    assert "500 edges of job orders (imports) left out" in text
    assert "at most 1,000 edges" in text
    version = browser.get("/lineage/?tab=edges").context["version"]
    # The next run of the job has fewer.
    assert unstored_edges(api, event(inputs=10, run=2)) == 0
    assert not TruncatedJob.objects.exists()
    listed = browser.get("/lineage/listed/", {"tab": "edges", "version": version})
    assert "left out" not in listed.content.decode()


def test_an_edge_that_several_events_name_takes_the_room_of_one(api: APIClient, raw: Asset) -> None:
    events = [event(inputs=500, outputs=400, run=run) for run in range(3)]
    assert unstored_edges(api, events) == 0
    assert LineageEdge.objects.count() == 900
    assert set(LineageEdge.objects.values_list("last_run_id", flat=True)) == {UUID(int=2)}


def test_jobs_beyond_the_room_are_counted_each(api: APIClient, raw: Asset) -> None:
    jobs = [event(inputs=600, job="a"), event(inputs=600, job="b"), event(inputs=600, job="c")]
    assert unstored_edges(api, jobs) == 800
    numbers = dict(TruncatedJob.objects.values_list("job_name", "number"))
    assert numbers == {"b": 200, "c": 600}


def test_a_million_pairs_in_each_event_take_no_longer_than_others(
    api: APIClient, raw: Asset
) -> None:
    for number in range(999):
        external(f"asset-{number}")
    inputs = [dataset(f"asset-{number}", "slicewise") for number in range(999)]
    one = completed(*others(1_000), inputs=inputs)
    # Of this thread alone: other tests may keep the machine busy.
    began = thread_time()
    assert unstored_edges(api, [one] * 3) == 999 * 1_000 - 1_000
    assert thread_time() - began < 10


def test_old_numbers_are_deleted(api: APIClient, raw: Asset) -> None:
    unstored_edges(api, event(inputs=700, outputs=800))
    row = TruncatedJob.objects.get()
    forget_lineage(row.at + timedelta(days=399))
    assert TruncatedJob.objects.exists()
    forget_lineage(row.at + timedelta(days=401))
    assert not TruncatedJob.objects.exists()


def test_the_tab_of_an_asset_links_to_all_its_edges(
    api: APIClient, browser: Client, raw: Asset
) -> None:
    unstored_edges(api, event(inputs=60))
    assert LineageEdge.objects.count() == 60
    text = browser.get("/lineage/assets/raw/").content.decode()
    assert "The newest 50 edges." in text
    assert "/lineage/?tab=edges&amp;asset=raw" in text
    page = browser.get("/lineage/?tab=edges&asset=raw&page=3").content.decode()
    assert page.count("kafka://broker:9092") == 10
    assert "No edges" in browser.get("/lineage/?tab=edges&asset=elsewhere").content.decode()
