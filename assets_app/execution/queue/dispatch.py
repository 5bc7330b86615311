"""The choice of queued runs for the free slots, and the messages to the workers."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from assets_app.execution.queue import messages
from assets_app.execution.queue.queue_heads import refresh_heads
from assets_app.execution.queue.transitions import move_all
from assets_app.models import ACTIVE_STATES, Gateway, Queue, Run, RunState
from assets_app.models.gateways import GATEWAY_SILENCE
from assets_app.queries.clock import database_now
from assets_app.queries.prepared_statements import prepared_cursor
from slicewise_server.web.advisory_locks import AdvisoryLock, try_lock_until_commit

RESEND_AFTER = timedelta(seconds=10)
# Runs sent beyond the free slots, per slot: a worker that ends a run finds the next one waiting.
AHEAD_PER_SLOT = 1
# How often one dispatch chooses runs anew because another transaction held the chosen runs.
_MOST_CHOICES = 5
# The states in which a run takes a slot: a dispatched run waits for a slot.
_AT_WORK = tuple(state for state in ACTIVE_STATES if state != RunState.DISPATCHED)

# Within each group and producer runs go in the order of their ids. Within each producer the groups
# take turns, then the producers do, and within each group. Heads that cannot start now (at a limit,
# paused, without Spark) are left out before anything is counted: no such head stands before a head
# that can start. The limits in a producer's version in force hold for all of its runs, also those
# that people requested. A group of several producers may get fewer runs than its limit allows: the
# next dispatch gives the rest.
#
# The first run of a producer stands before all other runs of the producer, and the first run of a
# group and producer before all other runs of both: more than the heads is read only of the
# producers (`front`) and the groups of a producer (`near`) from which a slot can be filled. Most
# heads are left out before the sort: heads of producers behind the `last` one of as many producers
# as there are free slots. Each of these producers is sure to fill a slot: the producer has no
# active run, nor has the group of its first head, and the group has room for the run. Where too few
# such producers are found at once, no head is left out.
#
# The statement does not depend on the planner's estimates: heads come and go too fast for the
# statistics of the table. `(... IN (...)) IS TRUE` is a lookup in a hash table, and never a join.
_CHOOSE = """
WITH active_run AS MATERIALIZED (
    SELECT group_id, producer_version_id FROM assets_app_run
    WHERE state IN ('dispatched', 'running', 'publishing', 'canceling')
), active AS MATERIALIZED (
    SELECT run.group_id, version.producer_id
    FROM active_run AS run
    JOIN assets_app_producerversion AS version ON version.id = run.producer_version_id
), of_group AS MATERIALIZED (
    SELECT group_id, count(*) AS running FROM active GROUP BY group_id
), of_producer AS MATERIALIZED (
    SELECT producer_id, count(*) AS running FROM active GROUP BY producer_id
), able AS MATERIALIZED (
    SELECT * FROM (
        SELECT head.run_id AS id, head.group_id, head.producer_version_id, head.producer_id,
               head.priority, head.group_priority,
               coalesce(of_group.running, 0) AS group_running,
               coalesce(of_producer.running, 0) AS running,
               head.group_max_active_runs - coalesce(of_group.running, 0) AS group_room,
               head.max_active_runs - coalesce(of_producer.running, 0) AS producer_room
        FROM assets_app_queuehead AS head
        LEFT JOIN of_group ON of_group.group_id = head.group_id
        LEFT JOIN of_producer ON of_producer.producer_id = head.producer_id
        WHERE head.queue = %(queue)s AND NOT head.paused AND (%(spark)s OR NOT head.needs_spark)
          AND head.group_id <> ALL(%(locked)s::bigint[])
    ) AS head
    WHERE (group_room IS NULL OR group_room > 0) AND (producer_room IS NULL OR producer_room > 0)
), idle AS MATERIALIZED (
    SELECT * FROM able WHERE running = 0
    ORDER BY priority DESC, group_priority DESC, id LIMIT 20 * %(free)s
), last AS MATERIALIZED (
    SELECT priority, group_priority, id
    FROM (
        SELECT *, row_number() OVER (PARTITION BY group_id ORDER BY priority DESC, id) AS seat
        FROM (
            SELECT DISTINCT ON (producer_id) * FROM idle
            ORDER BY producer_id, group_priority DESC, id
        ) AS first_of_producer
    ) AS seated
    WHERE group_running = 0 AND (group_room IS NULL OR seat <= group_room)
    ORDER BY priority DESC, group_priority DESC, id OFFSET %(free)s - 1 LIMIT 1
), eligible AS MATERIALIZED (
    SELECT able.producer_id FROM able LEFT JOIN last ON true
    WHERE last.id IS NULL OR (-able.priority, -able.group_priority, able.id)
        <= (-last.priority, -last.group_priority, last.id)
), contender AS MATERIALIZED (
    SELECT * FROM able WHERE (producer_id IN (SELECT producer_id FROM eligible)) IS TRUE
), foremost AS MATERIALIZED (
    SELECT DISTINCT ON (producer_id) * FROM contender
    ORDER BY producer_id, group_priority DESC, group_running, id
), front AS MATERIALIZED (
    SELECT producer_id, count(*) FILTER (WHERE group_room IS NULL OR seat <= group_room) OVER (
        ORDER BY priority DESC, group_priority DESC, running, id ROWS UNBOUNDED PRECEDING
    ) AS number
    FROM (
        SELECT *, row_number() OVER (
            PARTITION BY group_id ORDER BY priority DESC, running, id) AS seat
        FROM foremost
    ) AS first_of_producer
), near AS MATERIALIZED (
    SELECT *, dense_rank() OVER (
        PARTITION BY producer_id ORDER BY group_priority DESC, group_running, first_id) AS number
    FROM (
        SELECT *, min(id) OVER (PARTITION BY producer_id, group_id) AS first_id
        FROM contender
        WHERE (producer_id IN (SELECT producer_id FROM front WHERE number <= %(free)s)) IS TRUE
    ) AS head_of_front
), candidate AS (
    SELECT run.id, near.group_id, near.producer_id, near.priority, near.group_priority,
           near.group_running, near.running, near.group_room, near.producer_room,
           row_number() OVER (
               PARTITION BY near.producer_id, near.group_id ORDER BY run.id) AS rank
    FROM near
    CROSS JOIN LATERAL (
        -- By all columns of the index, so that no other one is taken to give this order.
        SELECT queue, group_id, producer_version_id, id FROM assets_app_run
        WHERE state = 'queued' AND not_before IS NULL
          AND (queue, group_id, producer_version_id, id)
              >= (%(queue)s, near.group_id, near.producer_version_id, near.id)
        ORDER BY queue, group_id, producer_version_id, id LIMIT %(free)s
    ) AS run
    WHERE near.number <= %(free)s AND run.queue = %(queue)s AND run.group_id = near.group_id
      AND run.producer_version_id = near.producer_version_id
), turned AS (
    SELECT *, row_number() OVER (
        PARTITION BY producer_id ORDER BY group_priority DESC, rank + group_running, id) AS turn
    FROM candidate
    WHERE (group_room IS NULL OR rank <= group_room)
      AND (producer_room IS NULL OR rank <= producer_room)
), seated AS (
    SELECT *, row_number() OVER (
        PARTITION BY group_id ORDER BY priority DESC, turn + running, id) AS seat
    FROM turned WHERE producer_room IS NULL OR turn <= producer_room
)
SELECT id, group_id FROM seated WHERE group_room IS NULL OR seat <= group_room
ORDER BY priority DESC, group_priority DESC, turn + running, id
LIMIT %(free)s
"""

# In random order: the limit of an asset holds over both queues, and neither queue comes first every
# time. Most dispatches find no queue here and end.
_QUEUES_TO_LOOK_AT = """
SELECT queue FROM unnest(%(queues)s::text[]) AS queue
WHERE EXISTS (SELECT FROM assets_app_queuehead AS head WHERE head.queue = queue.queue)
   OR EXISTS (SELECT FROM assets_app_queuechange)
   OR EXISTS (
       SELECT FROM assets_app_run WHERE state = 'queued' AND not_before <= statement_timestamp()
   )
ORDER BY random()
"""


def dispatch() -> int:
    """Send as many queued runs as slots have room for; return the number of runs.

    Each queue has a transaction of its own.
    """
    return sum(_dispatch_of(queue) for queue in _queues_to_look_at())


def _dispatch_of(queue: str) -> int:
    """Send runs of one queue; return the number of runs.

    One dispatcher works at a time: others return at once.
    """
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.DISPATCH):
            return 0
        now = database_now()
        refresh_heads(now)
        run_ids = _fill(queue, live_gateways(queue, now), now)
    for run_id in run_ids:
        messages.send(messages.EXECUTE, run_id, queue=queue)
    return len(run_ids)


def _fill(queue: str, gateways: Sequence[Gateway], now: datetime) -> list[int]:
    """Move runs to ``dispatched``, as many as the gateways of the queue have room for; return the
    ids in the order of dispatch.

    Runs that another transaction holds (of a backfill that is being canceled, say) are not waited
    for: the slots go to other groups.
    """
    free, has_spark = _room(queue, gateways), any(not row.spark_away_since for row in gateways)
    filled: list[int] = []
    locked_groups: set[int] = set()
    for _ in range(_MOST_CHOICES):
        if len(filled) >= free:
            break
        chosen = _choose(queue, free - len(filled), locked_groups, has_spark=has_spark)
        moved = set(
            move_all(
                [run_id for run_id, _ in chosen],
                *(RunState.QUEUED, RunState.DISPATCHED),
                skip_locked=True,
                dispatched_at=now,
            )
        )
        filled += [run_id for run_id, _ in chosen if run_id in moved]
        if len(moved) == len(chosen):
            break
        locked_groups |= {group_id for run_id, group_id in chosen if run_id not in moved}
        refresh_heads(now)
    return filled


def _choose(
    queue: str, free: int, locked_groups: Collection[int], *, has_spark: bool
) -> list[tuple[int, int]]:
    """Return the ids of the next runs, each with the id of its group.

    While no gateway reaches Spark, only runs that bring a Spark of their own are chosen.
    """
    values: dict[str, Any] = {
        "queue": queue,
        "free": free,
        "locked": list(locked_groups),
        "spark": has_spark,
    }
    with prepared_cursor() as cursor:
        cursor.execute(_CHOOSE, values)
        chosen: list[tuple[int, int]] = cursor.fetchall()
        return chosen


def resend_dispatched() -> None:
    """Send dispatched runs again that have not begun, as many as slots are free.

    Without a free slot, the earlier messages wait for one, and more messages would free no slot. If
    the queue has no gateway left, the runs are requeued.
    """
    now = database_now()
    # A run with a time of dispatch in the future was sent before the clock was set back.
    late = Q(dispatched_at__lt=now - RESEND_AFTER) | Q(dispatched_at__gt=now + RESEND_AFTER)
    unheard = list(
        Run.objects.filter(late, state=RunState.DISPATCHED)
        .order_by("dispatched_at", "id")
        .values_list("id", "queue")
    )
    for queue in Queue.values:
        run_ids = [run_id for run_id, run_queue in unheard if run_queue == queue]
        if not run_ids:
            continue
        slots = sum(gateway.slots for gateway in live_gateways(queue, now))
        if not slots:
            move_all(
                run_ids,
                *(RunState.DISPATCHED, RunState.QUEUED),
                skip_locked=True,
                dispatched_at=None,
            )
            continue
        free = slots - Run.objects.filter(state__in=_AT_WORK, queue=queue).count()
        for run_id in _dispatched_again(run_ids[: max(free, 0)], now):
            messages.send(messages.EXECUTE, run_id, queue=queue)


@transaction.atomic
def _dispatched_again(run_ids: Sequence[int], now: datetime) -> list[int]:
    """Store that these runs are sent now; return the ids of the runs that have not begun."""
    dispatched = Run.objects.filter(pk__in=run_ids, state=RunState.DISPATCHED).order_by("id")
    again = list(dispatched.select_for_update(skip_locked=True).values_list("id", flat=True))
    Run.objects.filter(pk__in=again).update(dispatched_at=now)
    return again


def live_gateways(queue: str, now: datetime | None = None) -> list[Gateway]:
    """Return the workers of a queue that have a recent heartbeat and take work, at the present
    unless the caller has read the clock.
    """
    now = now or database_now()
    lately = (now - GATEWAY_SILENCE, now + GATEWAY_SILENCE)
    return list(Gateway.objects.filter(queue=queue, draining=False, last_seen__range=lately))


def _queues_to_look_at() -> list[str]:
    """Return the queues in which a run may be ready."""
    with prepared_cursor() as cursor:
        cursor.execute(_QUEUES_TO_LOOK_AT, {"queues": Queue.values})
        return [row[0] for row in cursor.fetchall()]


def _room(queue: str, gateways: Iterable[Gateway]) -> int:
    room = sum(map(_room_of, gateways))
    active_count = Run.objects.filter(state__in=ACTIVE_STATES, queue=queue).count() if room else 0
    return room - active_count


def _room_of(gateway: Gateway) -> int:
    """Return how many runs a worker may have; with closed slots, no run waits for a slot."""
    if gateway.closed_slots:
        return gateway.slots - gateway.closed_slots
    return gateway.slots * (1 + AHEAD_PER_SLOT)
