"""The rows that a claim writes, whole sets in one statement each."""

import pytest
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.queue import claims
from assets_app.execution.queue.claims import PlannedRun, RunSpec, claim_all
from assets_app.models import Asset, AssetPartition, Queue, Run, RunGroup, RunState, Target, Trigger
from slicewise.partitions.rows import partition_rows
from tests.factories import DAILY_2013, asset

pytestmark = pytest.mark.django_db


def terms(of: Asset, group: RunGroup, **more: object) -> RunSpec:
    """What a request asks of the runs of an asset."""
    assert of.producer is not None
    assert of.producer.current_version is not None
    asked = {"params": {}, "requested_by": None, **more}
    return RunSpec(
        target=Target(of), producer_version=of.producer.current_version, group=group,
        trigger=Trigger.MANUAL, **asked,  # type: ignore[arg-type]
    )  # fmt: skip


def test_runs_are_written_as_the_model_would_have_them(alice: User) -> None:
    flights = asset("flights", DAILY_2013)
    group = RunGroup.objects.create(queue=Queue.BACKFILL)
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-03")))
    asked = terms(
        flights, group, params={"factor": 2, "note": 'a, "b" {c} \\d'}, requested_by=alice
    )
    before = timezone.now()
    claim_all([PlannedRun(asked, rows)])
    run = Run.objects.get()
    made = Run.objects.create(
        group=group,
        producer_version=asked.producer_version,
        asset=flights,
        trigger=Trigger.MANUAL,
        queue=Queue.BACKFILL,
        selection="2013-01-01..2013-01-03",
        partition_count=3,
        params=asked.params,
        requested_by=alice,
    )
    made.refresh_from_db()
    own = {"id", "created_at", "queued_at"}
    columns = [field.attname for field in Run._meta.concrete_fields if field.attname not in own]
    assert {name: getattr(run, name) for name in columns} == {
        name: getattr(made, name) for name in columns
    }
    assert run.state == RunState.QUEUED
    assert run.queued_at is not None
    assert before <= run.queued_at == run.created_at <= made.created_at


def test_runs_of_several_assets_keep_each_its_own() -> None:
    flights, weather = asset("flights", DAILY_2013), asset("weather", DAILY_2013)
    group, other = RunGroup.objects.create(), RunGroup.objects.create(queue=Queue.BACKFILL)
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-02")))
    claim_all(
        [
            PlannedRun(terms(flights, group, params={"a": 1}), rows[:1]),
            PlannedRun(terms(weather, other), rows),
            PlannedRun(terms(flights, group), rows[1:]),
        ]
    )
    found = Run.objects.order_by("id").values_list(
        "asset__name", "group_id", "queue", "selection", "partition_count", "params"
    )
    assert list(found) == [
        ("flights", group.pk, "scheduled", "2013-01-01", 1, {"a": 1}),
        ("weather", other.pk, "backfill", "2013-01-01..2013-01-02", 2, {}),
        ("flights", group.pk, "scheduled", "2013-01-02", 1, {}),
    ]


def test_a_large_claim_takes_its_slices_by_several_statements_in_one_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flights = asset("flights", DAILY_2013)
    asked = terms(flights, RunGroup.objects.create())
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-10")))
    claim_all([PlannedRun(asked, rows[3:4])])
    monkeypatch.setattr(claims, "_AT_ONCE", 4)
    claimed, held = claim_all([PlannedRun(asked, rows[:4:-1]), PlannedRun(asked, rows[4::-1])])
    assert [one.row.key for one in claimed] == [
        row.key for row in [*rows[:4:-1], *rows[4::-1]] if row != rows[3]
    ]
    assert [one.row for one in held] == [rows[3]]
    in_order = AssetPartition.objects.order_by("pk").values_list("key", flat=True)
    assert list(in_order) == [rows[3].key, *(row.key for row in rows if row != rows[3])]
