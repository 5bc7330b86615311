"""The pace of backfills, and the times at which their runs ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from backfills_app.models import Backfill


# The group is compared by >= and <= instead of =: otherwise the planner takes the latest of all
# runs to be near, and reads through the runs of every other backfill. A run without an end works
# until now, and the present counts as the start of one more run, of those that are dispatched: the
# time before is a gap too. A gap is idle up to a retry, but only until a run was queued: from then
# on runs waited. And a gap is idle while the backfill was paused. The clock of the host that wrote
# an audit entry may be a little ahead of the database's.
_PACES = """
SELECT groups.id, recent.partitions, recent.first, recent.last, recent.idle, recent.idle_until_now,
    recent.ended, unfinished.working_since,
    unfinished.running, unfinished.number - unfinished.running, unfinished.running_partitions,
    coalesce(cardinality(unfinished.dispatched), 0)
FROM unnest(%(groups)s::bigint[], %(names)s::text[]) AS groups(id, name), LATERAL (
    SELECT count(*) AS number, count(*) FILTER (
        WHERE run.state IN ('dispatched', 'running', 'publishing', 'canceling')
    ) AS running, coalesce(sum(run.partition_count) FILTER (
        WHERE run.state IN ('running', 'publishing', 'canceling')
    ), 0) AS running_partitions,
        min(run.started_at)
            FILTER (WHERE run.state IN ('running', 'publishing', 'canceling')) AS working_since,
        min(coalesce(run.queued_at, run.created_at))
            FILTER (WHERE run.state IN ('queued', 'dispatched')) AS queued_at,
        array_agg(run.id) FILTER (WHERE run.state = 'dispatched') AS dispatched
    FROM assets_app_run AS run WHERE run.group_id = groups.id
        AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
) AS unfinished, LATERAL (
    SELECT array_agg(entry.at) FILTER (WHERE entry.action = 'retry failed') AS retries,
        array_agg(entry.at ORDER BY entry.id) FILTER (WHERE entry.is_pause) AS pauses,
        array_agg(entry.next_at ORDER BY entry.id) FILTER (WHERE entry.is_pause) AS resumptions
    FROM (
        SELECT latest.*, lead(latest.at) OVER following AS next_at,
            latest.action = 'pause' AND lead(latest.action) OVER following = 'resume' AS is_pause
        FROM (
            SELECT id, action, at FROM accounts_app_auditentry
            WHERE subject_type = 'backfill' AND subject = groups.name
              AND action IN ('pause', 'resume', 'retry failed')
            ORDER BY id DESC LIMIT %(entries)s
        ) AS latest
        WINDOW following AS (PARTITION BY latest.action = 'retry failed' ORDER BY latest.id)
    ) AS entry
) AS audited, LATERAL (
    SELECT sum(run.partition_count) AS partitions,
        min(run.started_at) FILTER (WHERE run.ended_at IS NOT NULL) AS first,
        max(run.ended_at) AS last, count(run.ended_at) AS ended,
        sum(run.idle) FILTER (WHERE run.started_at <= run.last) AS idle,
        sum(run.idle) AS idle_until_now
    FROM (
        SELECT busy.*, CASE WHEN busy.started_at - busy.work_until > %(idle)s THEN (
            SELECT least(busy.started_at - busy.work_until, again.at - busy.work_until + coalesce((
                SELECT sum(greatest(
                    least(pause.until, busy.started_at) - greatest(pause.since, again.at),
                    interval '0'
                )) FROM unnest(audited.pauses, audited.resumptions) AS pause(since, until)
            ), interval '0')) FROM (
                SELECT greatest(
                    max(least(retry.at, busy.queued_since, busy.started_at)), busy.work_until
                ) AS at FROM (
                    SELECT unnest(audited.retries) AS at
                    UNION ALL
                    SELECT entry.at FROM accounts_app_auditentry AS entry
                    WHERE entry.subject_type = 'run' AND entry.subject = ANY(busy.ids::text[])
                      AND entry.action = 'retry'
                ) AS retry WHERE retry.at <= busy.started_at + %(idle)s
            ) AS again
        ) END AS idle
        FROM (
            SELECT work.*, max(work.ended_at) OVER () AS last,
                max(coalesce(work.ended_at, %(now)s)) OVER (
                    ORDER BY work.started_at, work.is_now
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS work_until,
                min(work.queued_at) OVER (
                    ORDER BY work.started_at, work.is_now
                    ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
                ) AS queued_since
            FROM (
                (SELECT ARRAY[id] AS ids, coalesce(queued_at, created_at) AS queued_at,
                    partition_count, started_at, ended_at, false AS is_now
                FROM assets_app_run
                WHERE group_id >= groups.id AND group_id <= groups.id
                  AND state IN ('succeeded', 'failed')
                ORDER BY group_id DESC, id DESC LIMIT %(recent)s)
                UNION ALL
                SELECT ARRAY[id], coalesce(queued_at, created_at), 0, started_at, NULL, false
                FROM assets_app_run
                WHERE group_id = groups.id AND started_at IS NOT NULL
                  AND state IN ('running', 'publishing', 'canceling')
                UNION ALL
                SELECT unfinished.dispatched, unfinished.queued_at, 0, %(now)s, NULL, true
            ) AS work
        ) AS busy
    ) AS run
) AS recent
"""
_RECENT_RUNS = 100
# Of the audit log of a backfill: so many of its latest pauses, resumptions and retries.
_RECENT_ENTRIES = 400
_FEWEST_FOR_A_RATE = 3
# A longer time without a run at work says nothing about the pace where the backfill was paused, or
# had ended before a retry, of the backfill or of a run. Other such times are waits, for a slot or a
# worker, and count.
_IDLE = timedelta(minutes=1)
# No run has ended for long if runs at work have taken so many times as long as ended runs did.
_LONG_FACTOR = 2
_FEWEST_AT_WORK = 5
_SHORTEST_SILENCE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Pace:
    """The recent pace of a backfill: the number of partitions that its latest runs materialized or
    failed, in how many seconds; the number of runs that take a slot, the number of queued runs, the
    number of partitions of runs that have begun, and the number of dispatched runs, which take a
    slot and have not begun. ``silent_since`` is the end of the last run, where runs at work should
    have ended long ago at this pace.
    """

    partitions: int = 0
    seconds: float = 0.0
    running: int = 0
    queued: int = 0
    running_partitions: int = 0
    dispatched: int = 0
    silent_since: datetime | None = None

    @property
    def per_second(self) -> float | None:
        """Partitions per second; None where too few have ended to tell."""
        return self.partitions / self.seconds if self.partitions >= _FEWEST_FOR_A_RATE else None


def paces_of(backfills: Iterable["Backfill"], now: datetime) -> dict[int, Pace]:
    """Return the pace of each backfill by its number: one query for all backfills.

    For a backfill with active runs, the time since the end of its last run counts too, so that the
    pace of a stuck backfill sinks. Pauses, and times between the end and a retry, do not count.
    """
    by_group = {backfill.group_id: backfill for backfill in backfills}
    facts: dict[str, Any] = {
        "groups": list(by_group), "names": [backfill.name for backfill in by_group.values()],
        "now": now, "recent": _RECENT_RUNS, "idle": _IDLE, "entries": _RECENT_ENTRIES,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_PACES, facts)
        rows = cursor.fetchall()
    paces = {}
    for group_id, partitions, first, last, idle, idle_until_now, ended, since, *numbers in rows:
        backfill = by_group[group_id]
        running, queued, running_partitions, dispatched = numbers
        seconds, is_silent = 0.0, False
        if first and last:
            span = last - first - (idle or timedelta(0))
            if since and span > timedelta(0) and not backfill.ended:
                is_silent = now - max(last, since) > _long(span / ended, running)
            if running and not backfill.ended:
                span = now - first - (idle_until_now or timedelta(0))
            seconds = max(span.total_seconds(), 0.1)
        paces[backfill.pk] = Pace(
            partitions or 0,
            seconds,
            running,
            queued,
            running_partitions,
            dispatched,
            last if is_silent else None,
        )
    return paces


def _long(time_per_run: timedelta, running: int) -> timedelta:
    """Return the time after which a run should have ended, while so many runs are at work at once
    and one has ended in each ``time_per_run``: a run takes the product of both.
    """
    return max(_LONG_FACTOR * max(running, _FEWEST_AT_WORK) * time_per_run, _SHORTEST_SILENCE)


_RUNNING_BY_ASSET = """
SELECT asset_id, sum(partition_count) FROM assets_app_run
WHERE group_id = %s AND state IN ('running', 'publishing', 'canceling') GROUP BY asset_id
"""


def running_by_asset(backfill: "Backfill") -> dict[int, int]:
    """Return how many partitions the runs have that have begun, by asset id: one query."""
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING_BY_ASSET, [backfill.group_id])
        return dict(cursor.fetchall())


MOST_RUNS_DRAWN = 10_000
"""The number of latest runs that are drawn: a million runs must not keep a page waiting."""

_ENDED_BY_TIME = """
WITH latest AS MATERIALIZED (
    SELECT id, state, started_at, ended_at FROM assets_app_run
    WHERE group_id >= %(group)s AND group_id <= %(group)s
    ORDER BY group_id DESC, id DESC LIMIT %(most)s
), span AS (
    SELECT min(coalesce(started_at, ended_at)) AS first, count(*) AS drawn,
        CASE WHEN bool_or(ended_at IS NULL) THEN %(now)s ELSE max(ended_at) END AS last
    FROM latest
)
SELECT span.first, span.last, span.drawn, latest.state, count(*),
    count(*) FILTER (WHERE latest.state = 'failed' AND NOT coalesce((
        SELECT true FROM backfills_app_backfillpartition AS backfill_partition
        WHERE backfill_partition.run_id >= latest.id AND backfill_partition.run_id <= latest.id
          AND backfill_partition.state = 'failed'
        ORDER BY backfill_partition.run_id LIMIT 1
    ), false)),
    least(greatest(floor(
        %(columns)s * extract(epoch FROM latest.ended_at - span.first)
        / greatest(extract(epoch FROM span.last - span.first), 0.001)
    ), 0), %(columns)s - 1)::int AS column_index
FROM latest, span WHERE latest.ended_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 7 ORDER BY 7
"""


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """The number of ended runs by interval of time and state, among the latest ``drawn`` runs.

    ``retried`` is the number of failed runs without a failed partition: the partitions were
    requeued since.
    """

    first: datetime
    last: datetime
    drawn: int
    columns: Mapping[int, Mapping[str, int]]
    retried: int


def ended_by_time(backfill: "Backfill", columns: int, now: datetime) -> EndedRuns | None:
    """Return the ended runs of a backfill, in so many intervals of the time from the first run to
    the last; None before the first run has ended.

    One query, which reads no more than the latest MOST_RUNS_DRAWN runs.
    """
    parameters: dict[str, Any] = {
        "group": backfill.group_id, "columns": columns, "now": now, "most": MOST_RUNS_DRAWN,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_ENDED_BY_TIME, parameters)
        rows = cursor.fetchall()
    if not rows:
        return None
    by_interval: dict[int, dict[str, int]] = {}
    for _, _, _, state, number, _, interval in rows:
        by_interval.setdefault(interval, {})[state] = number
    first, last, drawn = rows[0][:3]
    return EndedRuns(first, last, drawn, by_interval, sum(row[5] for row in rows))
