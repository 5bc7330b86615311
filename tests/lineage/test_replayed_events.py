"""Events that come late or again: the catalogue takes no old data for new data."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts_app.models import User
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.models import Asset, AssetPartition, WriteReport
from assets_app.scheduling.outbox import process_outbox
from slicewise_server.lineage.models import LineageEdge, ReceivedWrite
from tests.factories import external
from tests.lineage.received_events import ADDRESS, completed, dataset, made_versions, partitions
from tests.scheduling.scheduled_assets import DAILY, at, by, scheduled, waiting

pytestmark = pytest.mark.django_db
FOLDER = "raw/partition=2024-07-01"
NEWER, OLDER = "2024-07-03T04:00:00Z", "2024-07-02T04:00:00Z"


@pytest.fixture
def raw(db: None) -> Asset:
    return external("raw", DAILY, uri="s3://lake/raw", canonical_uri="s3://lake/raw")


def send(api: APIClient, *outputs: dict[str, Any], run: int = 1, at: str = NEWER) -> Any:
    """Send the end of a run; return the writes in the answer."""
    event = completed(*outputs, run=str(UUID(int=run)), eventTime=at)
    answer = api.post(ADDRESS, event, format="json")
    assert answer.status_code == 200, answer.content
    return answer.json()["writes"]


def written_at(key: str = "2024-07-01") -> Any:
    return AssetPartition.objects.get(key=key).materialized_at


def test_an_older_event_writes_nothing_and_makes_nothing_due(api: APIClient, raw: Asset) -> None:
    report = scheduled("report", by("raw"), since=at(2024, 1, 1))
    send(api, dataset(FOLDER), run=2, at=NEWER)
    process_outbox(at(2024, 8, 1))
    assert waiting(report) == [""]
    before = AssetPartition.objects.values_list("asset", "key", "version", "due_again", "due_at")
    rows = list(before)
    (write,) = send(api, dataset(FOLDER), run=1, at=OLDER)
    assert (write["report"], "after the time of the event" in write["problem"]) == (None, True)
    assert made_versions() == [("2024-07-01", 1)]
    assert WriteReport.objects.count() == 1
    assert process_outbox(at(2024, 8, 2)) == 0
    assert list(before.all()) == rows


def test_an_event_that_comes_again_after_its_record_is_deleted_writes_nothing(
    api: APIClient, raw: Asset
) -> None:
    send(api, dataset(FOLDER))
    ReceivedWrite.objects.all().delete()
    (write,) = send(api, dataset(FOLDER))
    assert write["report"] is None
    assert "by this run before" in write["problem"]
    assert made_versions() == [("2024-07-01", 1)]


def test_a_run_writes_a_partition_once_also_where_it_names_more_partitions_later(
    api: APIClient, raw: Asset
) -> None:
    send(api, dataset("raw", **partitions("2024-07-01")))
    (write,) = send(api, dataset("raw", **partitions("2024-07-01..2024-07-02")))
    assert write["report"] is not None
    assert made_versions() == [("2024-07-01", 1), ("2024-07-02", 1)]
    newest = WriteReport.objects.order_by("id").last()
    assert newest is not None
    assert (newest.selection, newest.partition_count) == ("2024-07-02", 1)


def test_a_newer_event_writes_the_next_version(api: APIClient, raw: Asset) -> None:
    send(api, dataset(FOLDER), run=1, at=OLDER)
    send(api, dataset(FOLDER), run=2, at=NEWER)
    assert made_versions() == [("2024-07-01", 1), ("2024-07-01", 2)]
    assert written_at() == at(2024, 7, 3, 4)


def test_a_partition_is_as_old_as_the_event_and_never_of_the_future(
    api: APIClient, raw: Asset
) -> None:
    send(api, dataset(FOLDER), run=1, at=OLDER)
    assert written_at() == at(2024, 7, 2, 4)
    future = timezone.now() + timedelta(days=1)
    send(api, dataset(FOLDER), run=2, at=future.isoformat())
    assert written_at() < future - timedelta(hours=23)


def test_an_event_from_before_a_reported_write_writes_nothing(
    api: APIClient, raw: Asset, olga: User
) -> None:
    report_write(ReportedWrite(asset=raw, selection="2024-07-01"), user=olga)
    (write,) = send(api, dataset(FOLDER))
    assert write["report"] is None
    assert made_versions() == [("2024-07-01", 1)]


def test_a_refused_old_event_leaves_no_partition_row(api: APIClient, raw: Asset) -> None:
    send(api, dataset("raw", **partitions("2024-07-01..2024-07-02")), run=2, at=NEWER)
    send(api, dataset("raw", **partitions("2024-07-01..2024-07-03")), run=1, at=OLDER)
    assert made_versions() == [("2024-07-01", 1), ("2024-07-02", 1), ("2024-07-03", 1)]
    send(api, dataset("raw", **partitions("2024-07-02")), run=3, at=OLDER)
    assert AssetPartition.objects.count() == 3


def test_an_older_event_leaves_the_time_of_an_edge(api: APIClient, raw: Asset) -> None:
    send(api, dataset(FOLDER), run=2, at=NEWER)
    send(api, dataset(FOLDER), run=1, at=OLDER)
    edge = LineageEdge.objects.get()
    assert (edge.last_run_id, edge.last_seen_at) == (UUID(int=2), at(2024, 7, 3, 4))
