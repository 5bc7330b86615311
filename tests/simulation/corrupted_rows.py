"""Rows that are made wrong, to see that each comparison finds them."""

from datetime import timedelta

from django.db.models import F, Model
from django.utils import timezone

from assets_app.models import (
    AssetPartition,
    AttemptInput,
    AwaitedPartition,
    Lease,
    Materialization,
    Outbox,
    PartitionCount,
    Run,
    RunAttempt,
    RunPartition,
    ScheduleTick,
)
from slicewise_server.metrics.models import RunCount

# How the line begins that tells of a wrong row.
KINDS = (
    "versions, only the product",
    "requests, only the product",
    "partitions, only the product",
    "inputs, only the product",
    "ticks, only the product",
    "kept count of partitions",
    "count of partitions on pages",
    "count of failed partitions",
    "count of partitions in progress",
    "count of stale partitions",
    "kept count of runs",
    "left over: mark of a partition",
    "left over: held partition",
    "left over: entry of the outbox",
    "left over: lease",
    "left over: open attempt",
    "left over: unfinished run",
    "left over: partition that a run waits for",
    "left over: queue head",
)


def make_rows_wrong() -> None:
    """Change rows of each kind that is compared."""
    _change(Materialization, created_at=F("created_at") + timedelta(hours=1))
    _change(RunPartition, state="canceled")
    AttemptInput.objects.update(version=0)
    _change(ScheduleTick, existing=F("existing") + 1)
    _change(RunCount, runs=F("runs") + 1)
    PartitionCount.objects.update(count=F("count") + 1)
    run = Run.objects.filter(state="failed").order_by("pk")[0]
    held = AssetPartition.objects.filter(asset__name__startswith="days_")
    held.update(held_by=run, due_again=True)
    Outbox.objects.create(run=run)
    attempt = RunAttempt.objects.order_by("pk")[0]
    Lease.objects.create(attempt=attempt, until=timezone.now())
    RunAttempt.objects.filter(pk=attempt.pk).update(ended_at=None, outcome="", clear_at=None)
    Run.objects.filter(pk=run.pk).update(state="queued", ended_at=None)
    AwaitedPartition.objects.create(
        run=run, asset=run.asset, identity="", key="", look_at=timezone.now()
    )


def _change(model: type[Model], **changes: object) -> None:
    rows = model._default_manager.order_by("pk")
    rows.filter(pk__in=list(rows.values_list("pk", flat=True)[:1])).update(**changes)
