"""What the end of runs means for the backfills that asked for them."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection
from django.dispatch import receiver

from assets_app.signals import runs_ended
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.messages import nudge_advance

_FOLLOW = """
WITH ended AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET state = made.state,
        reason = CASE WHEN made.state = 'skipped' THEN run.skip_reason ELSE wanted.reason END
    FROM assets_app_runpartition AS made
    JOIN assets_app_run AS run ON run.id = made.run_id
    WHERE wanted.run_id = ANY(%(runs)s) AND wanted.state = 'active'
      AND made.run_id = wanted.run_id AND made.slice_id = wanted.slice_id
      AND made.state <> 'pending'
    RETURNING wanted.backfill_asset_id, wanted.state
)
SELECT ended.backfill_asset_id, piece.backfill_id, ended.state, count(*)
FROM ended JOIN backfills_app_backfillasset AS piece ON piece.id = ended.backfill_asset_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

_SHORT = """
SELECT EXISTS (
    SELECT 1 FROM backfills_app_backfill AS asked
    JOIN backfills_app_backfillasset AS piece ON piece.backfill_id = asked.id
    WHERE asked.id = ANY(%(backfills)s) AND piece.waiting > 0 AND asked.max_active_runs > (
        SELECT count(*) FROM assets_app_run AS run
        WHERE run.group_id = asked.group_id AND run.queue = 'backfill' AND run.state = 'queued'
    )
)
"""


# Where assets follow, also of runs that others asked for and this backfill waits for.
_NOTE = """
INSERT INTO backfills_app_endedrun (backfill_id, run_id)
SELECT DISTINCT piece.backfill_id, wanted.run_id
FROM backfills_app_backfillpartition AS wanted
JOIN backfills_app_backfillasset AS piece ON piece.id = wanted.backfill_asset_id
WHERE wanted.run_id = ANY(%(runs)s) AND EXISTS (
    SELECT FROM backfills_app_backfillasset AS other
    WHERE other.backfill_id = piece.backfill_id AND other.position > piece.position
      AND (other.waiting > 0 OR other.expanded < other.total)
)
ON CONFLICT DO NOTHING
"""


@receiver(runs_ended)
def follow(run_ids: Sequence[int], **_: Any) -> None:
    """Bring the partitions, counts and states of their backfills up to date, in the run's
    transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, {"runs": list(run_ids)})
        ended = cursor.fetchall()
        cursor.execute(_NOTE, {"runs": list(run_ids)})
        if cursor.rowcount:
            nudge_advance()
    if not ended:
        return
    changes: dict[int, dict[str, int]] = {}
    for piece_id, _backfill_id, state, number in ended:
        change = changes.setdefault(piece_id, {"active": 0})
        change["active"] -= number
        change[state] = number
    for piece_id, change in sorted(changes.items()):
        shift_counts(piece_id, change)
    backfill_ids = {backfill_id for _, backfill_id, _, _ in ended}
    derive_states(backfill_ids)
    if _runs_short(backfill_ids):
        nudge_advance()


def _runs_short(backfill_ids: Collection[int]) -> bool:
    """Whether one of them has partitions waiting, and fewer runs in the queue than may be active.

    Otherwise the beat's next look is soon enough.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SHORT, {"backfills": list(backfill_ids)})
        return bool(cursor.fetchone()[0])
