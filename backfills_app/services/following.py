"""What the end of runs means for the backfills that asked for them."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.dispatch import receiver

from assets_app.signals import runs_ended
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.messages import nudge_advance

_FOLLOW = """
WITH ended AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET state = made.state
    FROM assets_app_runpartition AS made
    WHERE wanted.run_id = ANY(%(runs)s) AND wanted.state = 'active'
      AND made.run_id = wanted.run_id AND made.slice_id = wanted.slice_id
      AND made.state <> 'pending'
    RETURNING wanted.backfill_asset_id, wanted.state
)
SELECT ended.backfill_asset_id, piece.backfill_id, ended.state, count(*)
FROM ended JOIN backfills_app_backfillasset AS piece ON piece.id = ended.backfill_asset_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


@receiver(runs_ended)
def follow(run_ids: Sequence[int], **_: Any) -> None:
    """Bring the partitions, counts and states of their backfills up to date, in the run's
    transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, {"runs": list(run_ids)})
        ended = cursor.fetchall()
    if not ended:
        return
    changes: dict[int, dict[str, int]] = {}
    for piece_id, _backfill_id, state, number in ended:
        change = changes.setdefault(piece_id, {"active": 0})
        change["active"] -= number
        change[state] = number
    for piece_id, change in sorted(changes.items()):
        shift_counts(piece_id, change)
    derive_states({backfill_id for _, backfill_id, _, _ in ended})
    nudge_advance()
