"""The partitions that waiting runs await, and the times at which the runs are checked."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from assets_app.models import TERMINAL_STATES, AwaitedPartition, RunState
from assets_app.queries.prepared_statements import prepared_cursor

# A run is checked at least this often, even without a message; and so soon after a check or the
# creation of the run that the end of another run was not yet visible.
_LONGEST_PAUSE, _SHORTEST_PAUSE = timedelta(minutes=15), timedelta(seconds=1)

# The rows of the ended runs are deleted. A row that another transaction has locked is being
# changed by a check or by the end of another run. That transaction may wait for other rows of this
# statement, so the row is not waited for, and the next check deletes the row. A run may have a
# million partitions: the partitions are read only if a run waits for one of the assets at all.
_SCHEDULE_CHECKS = """
WITH forgotten AS (
    DELETE FROM assets_app_awaitedpartition WHERE id IN (
        SELECT id FROM assets_app_awaitedpartition WHERE run_id = ANY(%(runs)s::bigint[])
        ORDER BY id FOR UPDATE SKIP LOCKED
    )
)
UPDATE assets_app_awaitedpartition AS awaited SET look_at = clock_timestamp()
FROM assets_app_runpartition AS run_partition
JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
WHERE run_partition.run_id = ANY(%(runs)s::bigint[]) AND awaited.run_id <> ALL(%(runs)s::bigint[])
  AND awaited.look_at IS NOT NULL AND awaited.asset_id = partition.asset_id
  AND awaited.identity = partition.identity AND awaited.key = partition.key
  AND EXISTS (
    SELECT FROM (
        SELECT run.asset_id FROM assets_app_run AS run WHERE run.id = ANY(%(runs)s::bigint[])
        UNION ALL
        SELECT outlet.id FROM assets_app_run AS run
        JOIN assets_app_producerversion AS version ON version.id = run.producer_version_id
        JOIN assets_app_asset AS outlet ON outlet.producer_id = version.producer_id
        WHERE run.id = ANY(%(runs)s::bigint[])
    ) AS held
    JOIN assets_app_awaitedpartition AS awaited_partition
        ON awaited_partition.asset_id = held.asset_id AND awaited_partition.look_at IS NOT NULL
  )
"""

# A row that was updated after the check read it is left unchanged. The pause grows with the time
# that the run has waited, and ends when the run may wait no longer.
_PUT_OFF = """
WITH seen AS MATERIALIZED (
    SELECT awaited.id FROM assets_app_awaitedpartition AS awaited
    JOIN unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) AS looked(id, at)
        ON awaited.id = looked.id AND awaited.look_at = looked.at
    ORDER BY awaited.id FOR UPDATE OF awaited SKIP LOCKED
), forgotten AS (
    DELETE FROM assets_app_awaitedpartition AS awaited USING seen, assets_app_run AS run
    WHERE awaited.id = seen.id AND run.id = awaited.run_id AND run.state = ANY(%(ended)s)
)
UPDATE assets_app_awaitedpartition AS awaited
SET look_at = CASE WHEN run.state = %(waiting)s THEN greatest(
    %(now)s + %(shortest)s,
    least(%(now)s + least(%(now)s - run.created_at, %(longest)s), run.created_at + %(patience)s)
) END
FROM seen, assets_app_run AS run
WHERE awaited.id = seen.id AND run.id = awaited.run_id AND run.state <> ALL(%(ended)s)
"""


def wake_dependents(run_ids: Sequence[int]) -> None:
    """Let runs be checked that wait for partitions of these runs; delete the rows of these runs.

    The last statement of a transaction that locks rows which other transactions may want.
    """
    with prepared_cursor(len(run_ids)) as cursor:
        cursor.execute(_SCHEDULE_CHECKS, {"runs": list(run_ids)})


def due_for_check(now: datetime, most: int) -> list[AwaitedPartition]:
    """Return the awaited partitions that are due for a check, at most ``most``."""
    return list(AwaitedPartition.objects.filter(look_at__lte=now).order_by("look_at")[:most])


def postpone_checks(awaited: Sequence[AwaitedPartition], now: datetime) -> None:
    """Set the next check of the partitions that waiting runs await; delete the rows of ended runs.

    Rows of other runs are checked no more. Called at the end of the transaction that has checked.
    """
    facts: dict[str, Any] = {
        "ids": [row.pk for row in awaited],
        "times": [row.look_at for row in awaited],
        "now": now,
        "waiting": RunState.WAITING,
        "ended": [str(state) for state in TERMINAL_STATES],
        "shortest": _SHORTEST_PAUSE,
        "longest": _LONGEST_PAUSE,
        "patience": timedelta(hours=settings.DEPENDS_ON_PAST_HOURS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PUT_OFF, facts)
