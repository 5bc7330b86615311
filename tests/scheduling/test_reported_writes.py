"""Reported writes of other programs: recorded, and due downstream as after a run."""

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.request.reporting import ReportedPartition, ReportedWrite, report_write
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    PartitionCount,
    WriteReport,
)
from assets_app.queries.overview import asset_statuses
from assets_app.queries.staleness import newer_inputs
from assets_app.scheduling.outbox import process_outbox
from slicewise import PartitionAtRuntime, PartitionByInterval
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.factories import asset, external, person
from tests.scheduling.scheduled_assets import at, by, make_all, scheduled, waiting

HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 1, 1)
NOW = at(2024, 8, 1)
ALL_HOURS = "2024-07-01T00:00Z..2024-07-01T23:00Z"
pytestmark = pytest.mark.django_db


def report_selection(of: Asset, selection: str = "", *, user: User, **more: Any) -> WriteReport:
    return report_write(ReportedWrite(asset=of, selection=selection, **more), user=user)


def listed(*keys: str) -> list[ReportedPartition]:
    return [ReportedPartition(key=key, rows=place) for place, key in enumerate(keys)]


def test_each_partition_gets_its_next_version_and_a_record_without_a_run(alice: User) -> None:
    stock = external("stock", DAILY)
    report_selection(stock, "2024-07-01", user=alice, rows=10, bytes=99)
    report = report_selection(
        stock, "2024-07-01..2024-07-02", user=alice, metadata={"job": "nightly"}
    )
    assert report.partition_count == 2
    versions = AssetPartition.objects.order_by("key").values_list("key", "version", "state")
    assert list(versions) == [
        ("2024-07-01", 2, "materialized"), ("2024-07-02", 1, "materialized"),
    ]  # fmt: skip
    first = Materialization.objects.order_by("id")[0]
    assert (first.run, first.rows, first.bytes) == (None, 10, 99)
    assert PartitionCount.objects.get(state="materialized").count == 2
    assert report.reported_by_name == "alice"


def test_downstream_partitions_are_due_once_all_upstream_partitions_are_reported(
    alice: User,
) -> None:
    hourly = external("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    report_selection(hourly, "2024-07-01T00:00Z..2024-07-01T22:00Z", user=alice)
    process_outbox(NOW)
    assert waiting(daily) == []
    report_selection(hourly, "2024-07-01T23:00Z", user=alice)
    assert process_outbox(NOW) == 1
    assert waiting(daily) == ["2024-07-01"]
    assert not Outbox.objects.exists()


def test_reported_again_it_is_newer_than_data_made_from_it(alice: User, gateway: Gateway) -> None:
    hourly = external("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN, upstream={"hourly": None})
    report_selection(hourly, ALL_HOURS, user=alice)
    process_outbox(NOW)
    make_all(daily, gateway)
    assert newer_inputs(daily, ["2024-07-01"]) == {}
    report_selection(hourly, "2024-07-01T03:00Z", user=alice)
    assert newer_inputs(daily, ["2024-07-01"])["2024-07-01"].key == "2024-07-01T03:00Z"
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01"]


def test_the_whole_of_what_is_not_partitioned_is_written(alice: User) -> None:
    rates = external("rates")
    after = scheduled("after", by("rates"), since=BEGAN)
    report_selection(rates, user=alice)
    process_outbox(NOW)
    assert waiting(after) == [""]
    assert asset_statuses([rates])[0].last_success is not None


@pytest.mark.parametrize(
    ("selection", "more", "field", "message"),
    [
        ("2019-01-01", {}, "selection", "2019"),
        ("2999-01-01", {}, "selection", "2999"),
        ("", {}, "selection", "Name the partitions"),
        ("2024-01-01..2024-01-02", {"rows": 5}, "rows", "2 partitions"),
        ("2024-01-01..2024-01-02", {"bytes": 5}, "bytes", "a single partition"),
        ("", {"partitions": listed("2024-01-01", "2024-01-01")}, "partitions", "named twice"),
        ("", {"partitions": listed("2024-01-01", "2019-01-01")}, "partitions", "2019-01-01"),
        ("", {"partitions": listed("2024-01-01", "x")}, "partitions", "'x'"),
        ("", {"partitions": listed("2024-01-01", "2999-01-01")}, "partitions", "not over yet"),
        ("2024-01-01", {"partitions": listed("2024-01-01")}, "partitions", "leave the other"),
        ("", {"partitions": listed("2024-01-01"), "rows": 1}, "partitions", "leave the other"),
    ],
)
def test_invalid_reports_are_refused_and_nothing_is_recorded(
    alice: User, selection: str, more: dict[str, Any], field: str, message: str
) -> None:
    stock = external("stock", DAILY)
    with pytest.raises(InvalidRequest) as refused:
        report_selection(stock, selection, user=alice, **more)
    assert message in refused.value.errors[field][0]
    assert not WriteReport.objects.exists()
    assert not AssetPartition.objects.exists()


def test_too_many_at_once_are_refused_by_the_name_of_the_setting(
    alice: User, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_REQUEST = 3
    with pytest.raises(InvalidRequest, match=r"MAX_PARTITIONS_PER_REQUEST.*several requests"):
        report_selection(external("stock", DAILY), "2024-01-01..2024-01-04", user=alice)
    days = [f"2024-02-{day:02}" for day in range(1, 5)]
    with pytest.raises(InvalidRequest, match=r"MAX_PARTITIONS_PER_REQUEST.*several requests"):
        report_selection(external("other", DAILY), user=alice, partitions=listed(*days))
    with pytest.raises(InvalidRequest, match="is not partitioned"):
        report_selection(external("rates"), user=alice, partitions=listed(""))


def test_each_of_many_partitions_has_counts_of_its_own(alice: User) -> None:
    stock = external("stock", DAILY)
    report = report_selection(
        stock,
        user=alice,
        partitions=[
            ReportedPartition(key="2024-07-09", rows=9, bytes=90),
            ReportedPartition(key="2024-07-01", rows=0),
            ReportedPartition(key="2024-07-05", bytes=50),
        ],
    )
    assert report.partition_count == 3
    counts = {("2024-07-01", 0, None), ("2024-07-05", None, 50), ("2024-07-09", 9, 90)}
    assert set(AssetPartition.objects.values_list("key", "rows", "bytes")) == counts
    recorded = Materialization.objects.values_list("partition__key", "rows", "bytes")
    assert set(recorded) == counts


@pytest.mark.usefixtures("same_day")
def test_an_unfinished_window_is_refused(alice: User) -> None:
    today = f"{timezone.now():%Y-%m-%d}"
    with pytest.raises(InvalidRequest):
        report_selection(external("stock", DAILY), today, user=alice)


def test_of_what_is_made_here_nothing_is_taken(alice: User) -> None:
    with pytest.raises(InvalidRequest, match="is materialized here: materialize the asset"):
        report_selection(asset("made", DAILY), "2024-07-01", user=alice)
    with pytest.raises(InvalidRequest, match="not declared by any loaded file"):
        report_selection(external("gone", DAILY, active=False), "2024-07-01", user=alice)


def test_a_key_that_nobody_added_is_refused(alice: User) -> None:
    with pytest.raises(InvalidRequest) as refused:
        report_selection(external("models", PartitionAtRuntime(name="carriers")), "AA", user=alice)
    assert "AA" in refused.value.errors["selection"][0]


def test_while_a_run_holds_one_of_them_none_is_recorded(alice: User) -> None:
    from assets_app.execution.request.requests import MaterializeRequest, materialize

    stock = asset("stock", DAILY)
    materialize(MaterializeRequest(asset=stock, selection="2024-07-01"), user=alice)
    # Another file declares it now: something else writes it from here on.
    Asset.objects.update(producer=None)
    stock.refresh_from_db()
    with pytest.raises(ConflictingRequest, match="2024-07-01"):
        report_selection(stock, "2024-07-01..2024-07-02", user=alice)
    assert not Materialization.objects.exists()
    assert AssetPartition.objects.get().version == 0


def test_a_viewer_may_not_and_an_operator_leaves_a_trail(alice: User) -> None:
    stock = external("stock", DAILY)
    with pytest.raises(PermissionDenied, match=r"may not report writes.*operator"):
        report_selection(stock, "2024-07-01", user=person("vera", Role.VIEWER))
    report_selection(stock, "2024-07-01", user=person("olga", Role.OPERATOR))
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.subject) == ("olga", "report_write", "stock")
    assert entry.detail["partitions"] == 1


def test_a_record_is_of_a_run_or_of_a_report(alice: User) -> None:
    report = report_selection(external("stock", DAILY), "2024-07-01", user=alice)
    partition = AssetPartition.objects.get()
    with pytest.raises(IntegrityError, match="by_run_or_report"), transaction.atomic():
        Materialization.objects.create(partition=partition, version=9, created_at=timezone.now())
    with pytest.raises(IntegrityError, match="outbox_run_or_report"), transaction.atomic():
        Outbox.objects.create()
    assert report.materializations.count() == 1


def test_ten_thousand_are_recorded_in_a_few_statements(
    alice: User, django_assert_max_num_queries: Any
) -> None:
    hourly = external("hourly", HOURLY)
    with django_assert_max_num_queries(12):
        assert report_selection(hourly, "2024-01..2024-12", user=alice).partition_count == 8784
