"""Chooses which queued runs get the free slots, and nudges the workers."""

from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from assets_app.execution import messages
from assets_app.execution.transitions import move_all
from assets_app.models import ACTIVE_STATES, Gateway, Queue, Run, RunState

GATEWAY_SILENCE = timedelta(seconds=10)
RESEND_AFTER = timedelta(seconds=10)
# Runs sent beyond the free slots, per slot: a worker that ends one finds the next one waiting.
AHEAD_PER_SLOT = 1
_DISPATCH_LOCK = 7_301

# Round by round over the groups, so that a large one does not stand before a small one; within
# its own limit; a higher priority first. Only rows of the partial index on queued runs are read.
_CHOOSE = """
SELECT run.id FROM (
    SELECT queued.id, queued.group_id,
           row_number() OVER (PARTITION BY queued.group_id ORDER BY queued.id) AS round
    FROM assets_app_run AS queued
    WHERE queued.state = 'queued' AND queued.queue = %(queue)s
      AND (queued.not_before IS NULL OR queued.not_before <= %(now)s)
) AS run
JOIN assets_app_rungroup AS asked ON asked.id = run.group_id
LEFT JOIN (
    SELECT group_id, count(*) AS running FROM assets_app_run
    WHERE state IN ('dispatched', 'running', 'publishing', 'canceling') GROUP BY group_id
) AS active ON active.group_id = run.group_id
WHERE NOT asked.paused
  AND (asked.max_active_runs IS NULL
       OR run.round + coalesce(active.running, 0) <= asked.max_active_runs)
ORDER BY asked.priority DESC, run.round + coalesce(active.running, 0), run.id
LIMIT %(free)s
"""


def dispatch() -> int:
    """Send as many queued runs as there is room for; how many.

    One dispatcher at a time: others return at once.
    """
    queues = _queues_with_runs()
    if not queues:
        return 0
    sent: list[tuple[int, str]] = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_DISPATCH_LOCK])
        if not cursor.fetchone()[0]:
            return 0
        now = timezone.now()
        for queue in queues:
            free = _room(queue)
            if free > 0:
                cursor.execute(_CHOOSE, {"queue": queue, "free": free, "now": now})
                chosen = [row[0] for row in cursor.fetchall()]
                moved = move_all(chosen, RunState.QUEUED, RunState.DISPATCHED, dispatched_at=now)
                sent += [(run_id, queue) for run_id in chosen if run_id in set(moved)]
    for run_id, queue in sent:
        messages.send(messages.EXECUTE, run_id, queue=queue)
    return len(sent)


def resend_unheard() -> None:
    """Send again what was dispatched and not begun.

    Back to the queue where no gateway is left to begin it.
    """
    now = timezone.now()
    unheard = Run.objects.filter(
        state=RunState.DISPATCHED, dispatched_at__lt=now - RESEND_AFTER
    ).values_list("id", "queue")
    for queue in Queue.values:
        run_ids = [run_id for run_id, of in unheard if of == queue]
        if not run_ids:
            continue
        if not live_gateways(queue):
            move_all(run_ids, RunState.DISPATCHED, RunState.QUEUED, dispatched_at=None)
            continue
        Run.objects.filter(pk__in=run_ids, state=RunState.DISPATCHED).update(dispatched_at=now)
        for run_id in run_ids:
            messages.send(messages.EXECUTE, run_id, queue=queue)


def live_gateways(queue: str) -> list[Gateway]:
    """The workers of a queue that were heard of lately and take work."""
    heard_since = timezone.now() - GATEWAY_SILENCE
    return list(Gateway.objects.filter(queue=queue, draining=False, last_seen__gt=heard_since))


def _queues_with_runs() -> list[str]:
    """The queues in which a run waits: one look at a small index, most ticks do no more."""
    queued = Run.objects.filter(state=RunState.QUEUED).order_by()
    return list(queued.values_list("queue", flat=True).distinct())


def _room(queue: str) -> int:
    slots = sum(gateway.slots for gateway in live_gateways(queue))
    taken = Run.objects.filter(state__in=ACTIVE_STATES, queue=queue).count() if slots else 0
    return slots * (1 + AHEAD_PER_SLOT) - taken
