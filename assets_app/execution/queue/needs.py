"""The times at which waiting runs are checked: each waits for the partition before its own."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from assets_app.models import TERMINAL_STATES, RunNeed, RunState

# A need is checked at least this often, even without a message; and so soon after a check or the
# creation of a run that the end of another run was not yet visible.
_LONGEST_PAUSE, _SHORTEST_PAUSE = timedelta(minutes=15), timedelta(seconds=1)

# The needs of the ended runs are deleted. A row that another transaction has locked is being
# changed by a check or by the end of another run. That transaction may wait for other rows of this
# statement, so the row is not waited for, and the next check deletes the row. A run may have a
# million partitions: the partitions are read only if a run waits for one of the assets at all.
_TELL = """
WITH forgotten AS (
    DELETE FROM assets_app_runneed WHERE id IN (
        SELECT id FROM assets_app_runneed WHERE run_id = ANY(%(runs)s)
        ORDER BY id FOR UPDATE SKIP LOCKED
    )
)
UPDATE assets_app_runneed AS need SET look_at = clock_timestamp()
FROM assets_app_runpartition AS made
JOIN assets_app_assetpartition AS slice ON slice.id = made.slice_id
WHERE made.run_id = ANY(%(runs)s) AND need.run_id <> ALL(%(runs)s) AND need.look_at IS NOT NULL
  AND need.asset_id = slice.asset_id AND need.identity = slice.identity AND need.key = slice.key
  AND EXISTS (
    SELECT FROM (
        SELECT run.asset_id FROM assets_app_run AS run WHERE run.id = ANY(%(runs)s)
        UNION ALL
        SELECT outlet.id FROM assets_app_run AS run
        JOIN assets_app_producerversion AS version ON version.id = run.producer_version_id
        JOIN assets_app_asset AS outlet ON outlet.producer_id = version.producer_id
        WHERE run.id = ANY(%(runs)s)
    ) AS held
    JOIN assets_app_runneed AS wanted
        ON wanted.asset_id = held.asset_id AND wanted.look_at IS NOT NULL
  )
"""

# A need that was updated after the check read it is left unchanged. The pause grows with the time
# that the run has waited, and ends when the run may wait no longer.
_PUT_OFF = """
WITH seen AS MATERIALIZED (
    SELECT need.id FROM assets_app_runneed AS need
    JOIN unnest(%(needs)s::bigint[], %(times)s::timestamptz[]) AS looked(id, at)
        ON need.id = looked.id AND need.look_at = looked.at
    ORDER BY need.id FOR UPDATE OF need SKIP LOCKED
), forgotten AS (
    DELETE FROM assets_app_runneed AS need USING seen, assets_app_run AS run
    WHERE need.id = seen.id AND run.id = need.run_id AND run.state = ANY(%(ended)s)
)
UPDATE assets_app_runneed AS need SET look_at = CASE WHEN run.state = %(waiting)s THEN greatest(
    %(now)s + %(shortest)s,
    least(%(now)s + least(%(now)s - run.created_at, %(longest)s), run.created_at + %(patience)s)
) END
FROM seen, assets_app_run AS run
WHERE need.id = seen.id AND run.id = need.run_id AND run.state <> ALL(%(ended)s)
"""


def wake_dependents(run_ids: Sequence[int]) -> None:
    """Let runs be checked that wait for partitions of these runs; delete the needs of these runs.

    The last statement of a transaction that locks rows which other transactions may want.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TELL, {"runs": list(run_ids)})


def due_needs(now: datetime, most: int) -> list[RunNeed]:
    """Return the needs that are due for a check, at most ``most``."""
    return list(RunNeed.objects.filter(look_at__lte=now).order_by("look_at")[:most])


def postpone_needs(needs: Sequence[RunNeed], now: datetime) -> None:
    """Set the next check of the needs of waiting runs; delete the needs of ended runs.

    Needs of other runs are checked no more. Called at the end of the transaction that has checked.
    """
    facts: dict[str, Any] = {
        "needs": [need.pk for need in needs],
        "times": [need.look_at for need in needs],
        "now": now,
        "waiting": RunState.WAITING,
        "ended": [str(state) for state in TERMINAL_STATES],
        "shortest": _SHORTEST_PAUSE,
        "longest": _LONGEST_PAUSE,
        "patience": timedelta(hours=settings.DEPENDS_ON_PAST_HOURS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PUT_OFF, facts)
