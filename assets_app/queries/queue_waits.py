"""Why a queued run has not begun, in words: for the pages of the run and of the workers."""

from datetime import datetime
from typing import NamedTuple

from assets_app.models import (
    ACTIVE_STATES,
    Gateway,
    GroupKind,
    Queue,
    QueueHead,
    Run,
    RunState,
)
from assets_app.models.gateways import GatewayState
from slicewise.texts import counted


def queue_wait_of(run: Run, now: datetime) -> str:
    """Return the first reason that holds, as a sentence; empty for a run that is not queued, that
    waits for the time of its retry, or that begins with the next dispatch.
    """
    if run.state != RunState.QUEUED or (run.not_before and run.not_before > now):
        return ""
    if run.group.paused:
        return "The backfill is paused, or is being canceled."
    gateways = Gateway.objects.filter(queue=run.queue)
    online = [row for row in gateways if row.state_at(now) == GatewayState.WORKING]
    if not online:
        return f"No worker of the queue {run.queue} is online."
    needs_spark = run.producer_version.spec.engine != "submit"
    if needs_spark and all(row.spark_away_since for row in online):
        return "No worker reaches the Spark server."
    active = Run.objects.filter(state__in=ACTIVE_STATES)
    limit = run.group.max_active_runs
    if limit is not None and active.filter(group=run.group_id).count() >= limit:
        # A schedule has the limit of its asset.
        owner = "backfill" if run.group.kind == GroupKind.BACKFILL else "asset"
        return f"The {owner} has {counted(limit, 'active run')}, its limit."
    producer = run.producer_version.producer
    in_force = producer.current_version
    limit = in_force.spec.max_active_runs if in_force else None
    if limit is not None:
        own = active.filter(producer_version__producer=producer)
        if own.count() >= limit:
            return f"The asset has {counted(limit, 'active run')}, its limit."
    slots, closed = sum(row.slots for row in online), sum(row.closed_slots for row in online)
    if active.filter(queue=run.queue).count() < slots - closed:
        return ""
    verb = "is" if slots == 1 else "are"
    if closed:
        return (
            f"All open slots of the queue {run.queue} are in use. Runs that have lost their workers"
            f" keep {closed:,} of {counted(slots, 'slot')} closed."
        )
    return f"{slots:,} of {counted(slots, 'slot')} of the queue {run.queue} {verb} in use."


class QueueWait(NamedTuple):
    """A queued run, and the reason as a sentence; the reason is empty where the run begins soon."""

    run_id: int
    reason: str


def oldest_wait_of(queue: Queue, now: datetime) -> QueueWait | None:
    """Return the oldest ready run of a queue; None if dispatch knows no ready run.

    Seven statements at most: dispatch keeps one head for each group, so that the number of queued
    runs does not matter.
    """
    heads = QueueHead.objects.filter(queue=queue).order_by("run_id")
    run_id = heads.values_list("run_id", flat=True).first()
    runs = Run.objects.select_related("group", "producer_version__producer__current_version")
    run = runs.filter(pk=run_id, state=RunState.QUEUED).first() if run_id else None
    return QueueWait(run.pk, queue_wait_of(run, now)) if run else None
