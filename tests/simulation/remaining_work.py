"""Rows that stand for work to do: none may be left once all is quiet."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Q

from assets_app.execution.queue.queue_heads import refresh_heads
from assets_app.models import (
    TERMINAL_STATES,
    AssetPartition,
    AwaitedPartition,
    Lease,
    Outbox,
    QueueChange,
    QueueHead,
    Run,
    RunAttempt,
)
from assets_app.queries.clock import database_now
from slicewise_server.web.advisory_locks import AdvisoryLock, try_lock_until_commit
from tests.simulation.reference import Reference


def leftovers(reference: Reference) -> list[str]:
    """Return the rows that are left over.

    A partition that waits for a fresh asset stays marked until the asset is written.
    """
    with transaction.atomic():
        assert try_lock_until_commit(AdvisoryLock.DISPATCH)
        refresh_heads(database_now())
    marked_rows = AssetPartition.objects.filter(Q(due_again=True) | Q(due_at__isnull=False))
    marked = {
        (name, (start, segment))
        for name, start, segment in marked_rows.values_list(
            "asset__name", "window_start", "segment"
        )
    }
    waiting = reference.waiting_for_fresh()
    rows: dict[str, Iterable[object]] = {
        "mark of a partition": marked - waiting,
        "held partition": AssetPartition.objects.filter(held_by__isnull=False),
        "entry of the outbox": Outbox.objects.all(),
        "lease": Lease.objects.all(),
        "open attempt": RunAttempt.objects.filter(ended_at=None),
        "unfinished run": Run.objects.exclude(state__in=TERMINAL_STATES),
        "partition that a run waits for": AwaitedPartition.objects.filter(look_at__isnull=False),
        "queue head": QueueHead.objects.all(),
        "change of the queue": QueueChange.objects.all(),
    }
    return [
        *(f"left over: {kind}: {row}" for kind, of_kind in rows.items() for row in of_kind),
        *(f"not marked, though it waits for a fresh asset: {row}" for row in waiting - marked),
    ]
