"""Chooses which queued runs get the free slots, and nudges the workers."""

from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Q

from assets_app.execution import messages
from assets_app.execution.transitions import move_all
from assets_app.models import ACTIVE_STATES, Gateway, Queue, Run, RunState
from assets_app.models.gateways import GATEWAY_SILENCE
from assets_app.queries.clock import database_now

RESEND_AFTER = timedelta(seconds=10)
# Runs sent beyond the free slots, per slot: a worker that ends one finds the next one waiting.
AHEAD_PER_SLOT = 1
_DISPATCH_LOCK = 7_301

# Within each group, for each version of the code, the first that could start; of these, within each
# producer, the groups take turns; then the producers do. Runs that cannot start now (too early, at
# a limit, paused) are left out before anybody is counted: none stands before one that can.
# The limits in a producer's version in force hold for all of its runs, whoever asked for them. A
# group of several producers may get fewer than its limit allows: the next look gives the rest.
# Only rows of the two partial indexes on unfinished runs are read.
_CHOOSE = """
WITH active AS MATERIALIZED (
    SELECT run.group_id, version.producer_id
    FROM assets_app_run AS run
    JOIN assets_app_producerversion AS version ON version.id = run.producer_version_id
    WHERE run.state IN ('dispatched', 'running', 'publishing', 'canceling')
), of_group AS (
    SELECT group_id, count(*) AS running FROM active GROUP BY group_id
), of_producer AS (
    SELECT producer_id, count(*) AS running FROM active GROUP BY producer_id
), placed AS (
    SELECT id, group_id, producer_version_id,
           row_number() OVER (PARTITION BY group_id, producer_version_id ORDER BY id) AS place
    FROM assets_app_run
    WHERE state = 'queued' AND queue = %(queue)s
      AND (not_before IS NULL OR not_before <= %(now)s)
), limits AS (
    SELECT producer.id AS producer_id,
           coalesce((said.definition ->> 'priority')::int, 0) AS priority,
           (said.definition ->> 'max_active_runs')::int AS max_active_runs
    FROM assets_app_producer AS producer
    LEFT JOIN assets_app_producerversion AS said ON said.id = producer.current_version_id
), able AS (
    SELECT run.id, run.group_id, version.producer_id,
           limits.priority, asked.priority AS group_priority,
           run.place + coalesce(of_group.running, 0) AS round,
           coalesce(of_producer.running, 0) AS running,
           asked.max_active_runs - coalesce(of_group.running, 0) AS group_room,
           limits.max_active_runs - coalesce(of_producer.running, 0) AS producer_room
    FROM placed AS run
    JOIN assets_app_rungroup AS asked ON asked.id = run.group_id AND NOT asked.paused
    JOIN assets_app_producerversion AS version ON version.id = run.producer_version_id
    JOIN limits ON limits.producer_id = version.producer_id
    LEFT JOIN of_group ON of_group.group_id = run.group_id
    LEFT JOIN of_producer ON of_producer.producer_id = version.producer_id
    WHERE run.place <= %(free)s
      AND (asked.max_active_runs IS NULL
           OR run.place + coalesce(of_group.running, 0) <= asked.max_active_runs)
      AND (limits.max_active_runs IS NULL
           OR run.place + coalesce(of_producer.running, 0) <= limits.max_active_runs)
), turned AS (
    SELECT *, row_number() OVER (
        PARTITION BY producer_id ORDER BY group_priority DESC, round, id) AS turn
    FROM able
), seated AS (
    SELECT *, row_number() OVER (
        PARTITION BY group_id ORDER BY priority DESC, turn + running, id) AS seat
    FROM turned WHERE producer_room IS NULL OR turn <= producer_room
)
SELECT id FROM seated WHERE group_room IS NULL OR seat <= group_room
ORDER BY priority DESC, group_priority DESC, turn + running, id
LIMIT %(free)s
"""

# By turns: the limit of an asset holds over both queues, and neither comes first every time.
_QUEUES_WITH_RUNS = """
SELECT queue FROM unnest(%s::text[]) AS queue
WHERE EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.state = 'queued' AND run.queue = queue.queue
) ORDER BY random()
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
        now = database_now()
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
    now = database_now()
    # One that was sent in the time to come was sent before the clock was set back.
    late = Q(dispatched_at__lt=now - RESEND_AFTER) | Q(dispatched_at__gt=now + RESEND_AFTER)
    unheard = Run.objects.filter(late, state=RunState.DISPATCHED).values_list("id", "queue")
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
    now = database_now()
    lately = (now - GATEWAY_SILENCE, now + GATEWAY_SILENCE)
    return list(Gateway.objects.filter(queue=queue, draining=False, last_seen__range=lately))


def _queues_with_runs() -> list[str]:
    """The queues in which a run waits: one look at a small index, most ticks do no more."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES_WITH_RUNS, [Queue.values])
        return [row[0] for row in cursor.fetchall()]


def _room(queue: str) -> int:
    slots = sum(gateway.slots for gateway in live_gateways(queue))
    taken = Run.objects.filter(state__in=ACTIVE_STATES, queue=queue).count() if slots else 0
    return slots * (1 + AHEAD_PER_SLOT) - taken
