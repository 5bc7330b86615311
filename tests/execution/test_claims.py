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
    """Return the spec of the runs of an asset."""
    assert of.producer is not None
    assert of.producer.current_version is not None
    defaults = {"params": {}, "requested_by": None, **more}
    return RunSpec(
        target=Target(of), producer_version=of.producer.current_version, group=group,
        trigger=Trigger.MANUAL, **defaults,  # type: ignore[arg-type]
    )  # fmt: skip


def test_runs_are_written_as_the_model_would_have_them(alice: User) -> None:
    flights = asset("flights", DAILY_2013)
    group = RunGroup.objects.create(queue=Queue.BACKFILL)
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-03")))
    spec = terms(flights, group, params={"factor": 2, "note": 'a, "b" {c} \\d'}, requested_by=alice)
    before = timezone.now()
    claim_all([PlannedRun(spec, rows)])
    run = Run.objects.get()
    model_run = Run.objects.create(
        group=group,
        producer_version=spec.producer_version,
        asset=flights,
        trigger=Trigger.MANUAL,
        queue=Queue.BACKFILL,
        selection="2013-01-01..2013-01-03",
        partition_count=3,
        params=spec.params,
        requested_by=alice,
    )
    model_run.refresh_from_db()
    own_columns = {"id", "created_at", "queued_at"}
    columns = [
        field.attname for field in Run._meta.concrete_fields if field.attname not in own_columns
    ]
    assert {name: getattr(run, name) for name in columns} == {
        name: getattr(model_run, name) for name in columns
    }
    assert run.state == RunState.QUEUED
    assert run.queued_at is not None
    assert before <= run.queued_at == run.created_at <= model_run.created_at


def test_runs_of_several_assets_keep_each_its_own() -> None:
    flights, weather = asset("flights", DAILY_2013), asset("weather", DAILY_2013)
    group, backfill_group = RunGroup.objects.create(), RunGroup.objects.create(queue=Queue.BACKFILL)
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-02")))
    claim_all(
        [
            PlannedRun(terms(flights, group, params={"a": 1}), rows[:1]),
            PlannedRun(terms(weather, backfill_group), rows),
            PlannedRun(terms(flights, group), rows[1:]),
        ]
    )
    runs = Run.objects.order_by("id").values_list(
        "asset__name", "group_id", "queue", "selection", "partition_count", "params"
    )
    assert list(runs) == [
        ("flights", group.pk, "scheduled", "2013-01-01", 1, {"a": 1}),
        ("weather", backfill_group.pk, "backfill", "2013-01-01..2013-01-02", 2, {}),
        ("flights", group.pk, "scheduled", "2013-01-02", 1, {}),
    ]


def test_a_large_claim_takes_its_partitions_by_several_statements_in_one_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flights = asset("flights", DAILY_2013)
    spec = terms(flights, RunGroup.objects.create())
    rows = list(partition_rows(DAILY_2013, DAILY_2013.select("2013-01-01..2013-01-10")))
    claim_all([PlannedRun(spec, rows[3:4])])
    monkeypatch.setattr(claims, "_AT_ONCE", 4)
    claimed, held_rows = claim_all([PlannedRun(spec, rows[:4:-1]), PlannedRun(spec, rows[4::-1])])
    assert [claimed_row.row.key for claimed_row in claimed] == [
        row.key for row in [*rows[:4:-1], *rows[4::-1]] if row != rows[3]
    ]
    assert [held_row.row for held_row in held_rows] == [rows[3]]
    in_order = AssetPartition.objects.order_by("pk").values_list("key", flat=True)
    assert list(in_order) == [rows[3].key, *(row.key for row in rows if row != rows[3])]
