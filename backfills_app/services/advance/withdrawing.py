"""Withdrawal of a backfill's runs that have not begun: the partitions of these runs wait again, and
other runs may claim the partitions meanwhile.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Max

from assets_app.execution.queue.withdrawing import (
    has_untried_runs,
    recall,
    untried_runs_of,
    waiting_runs_of,
    withdraw_runs,
)
from assets_app.models import Run, RunState
from backfills_app.models import ENDED_STATES, Backfill, BackfillState, EndedRun
from backfills_app.services.bookkeeping.counting import derive_states, shift_counts
from backfills_app.services.bookkeeping.locks import try_lock
from backfills_app.services.bookkeeping.messages import nudge_advance

_RETURN_TO_WAITING = """
WITH returned AS (
    UPDATE backfills_app_backfillpartition SET state = 'waiting', run_id = NULL
    WHERE run_id = ANY(%s) AND state = 'active' RETURNING backfill_asset_id
)
SELECT backfill_asset_id, count(*) FROM returned GROUP BY 1 ORDER BY 1
"""
# Other backfills that left partitions to these runs.
_DEPENDENT_BACKFILLS = """
SELECT backfill_asset.backfill_id, array_agg(DISTINCT backfill_partition.run_id)
FROM backfills_app_backfillpartition AS backfill_partition
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = backfill_partition.backfill_asset_id
WHERE backfill_partition.run_id = ANY(%s) AND backfill_asset.backfill_id <> %s
GROUP BY 1 ORDER BY 1
"""
_TAKE_OVER = """
WITH updated AS (
    UPDATE backfills_app_backfillpartition AS backfill_partition
    SET run_id = NULL,
        state = CASE WHEN %(goes_on)s THEN 'waiting' ELSE backfill_partition.state END,
        reason = CASE WHEN %(goes_on)s THEN '' ELSE backfill_partition.reason END
    FROM backfills_app_backfillasset AS backfill_asset
    WHERE backfill_partition.run_id = ANY(%(runs)s)
      AND backfill_asset.id = backfill_partition.backfill_asset_id
      AND backfill_asset.backfill_id = %(backfill)s
    RETURNING backfill_partition.backfill_asset_id
)
SELECT backfill_asset_id, count(*) FROM updated GROUP BY 1 ORDER BY 1
"""


def withdraw_untried_runs(backfill: Backfill, most: int) -> bool:
    """Withdraw runs that have not begun, of some ``most`` partitions at a time, so that these
    partitions wait for another turn; return whether such runs are left.

    Call under the backfill's lock. Another backfill that left partitions to such a run materializes
    these partitions itself; the run stays for now where another transaction is changing that
    backfill or that run.
    """
    _withdraw(backfill, untried_runs_of(backfill.group, most))
    return has_untried_runs(backfill.group)


def withdraw_waiting_runs(backfill: Backfill) -> None:
    """Withdraw all runs that wait for an earlier partition: the earlier partition may be put back
    into the queue, and has to come first then.
    """
    _withdraw(backfill, waiting_runs_of(backfill.group))


@dataclass(slots=True)
class _Withdrawal:
    """A withdrawal of runs in one transaction: the backfills whose waiting runs are being withdrawn
    already, the backfills that take partitions over, the runs, and the changes of counts by asset.
    """

    visited_ids: set[int] = field(default_factory=set)
    continuing_ids: set[int] = field(default_factory=set)
    run_ids: list[int] = field(default_factory=list)
    changes: dict[int, Counter[str]] = field(default_factory=dict)

    def add_waiting(self, returned_rows: Iterable[tuple[int, int]], former_state: str) -> None:
        """Count partitions, by asset, that wait again."""
        for asset_row_id, number in returned_rows:
            change = self.changes.setdefault(asset_row_id, Counter())
            change["waiting"] += number
            change[former_state] -= number


def _withdraw(backfill: Backfill, run_ids: list[int]) -> None:
    """Withdraw runs of a backfill, and runs of other backfills that come after these runs. The
    states of the other backfills are derived last: a transaction keeps the rows of backfills locked
    until its end, and requests need these rows.
    """
    withdrawal = _Withdrawal()
    _withdraw_of(backfill, run_ids, withdrawal)
    # In the order in which the end of runs of several backfills changes counts.
    for asset_row_id, change in sorted(withdrawal.changes.items()):
        shift_counts(asset_row_id, change)
    withdraw_runs(withdrawal.run_ids)
    if withdrawal.continuing_ids:
        derive_states(withdrawal.continuing_ids)
        nudge_advance()


def _withdraw_of(backfill: Backfill, run_ids: list[int], withdrawal: _Withdrawal) -> None:
    """Let the partitions of runs of one backfill wait again, and add the runs to the withdrawal."""
    withdrawal.visited_ids.add(backfill.pk)
    if not run_ids:
        return
    # The runs are locked by now: no backfill can leave more partitions to these runs.
    with connection.cursor() as cursor:
        cursor.execute(_DEPENDENT_BACKFILLS, [run_ids, backfill.pk])
        dependent_backfills = cursor.fetchall()
    kept_runs = _runs_to_keep(
        run_ids,
        {run for other_id, runs in dependent_backfills if not try_lock(other_id) for run in runs},
    )
    recall(sorted(kept_runs))
    withdrawn_runs = [run for run in run_ids if run not in kept_runs]
    for other_id, runs in dependent_backfills:
        if taken_over_runs := sorted(set(runs) - kept_runs):
            _take_over(other_id, taken_over_runs, withdrawal)
    with connection.cursor() as cursor:
        cursor.execute(_RETURN_TO_WAITING, [withdrawn_runs])
        withdrawal.add_waiting(cursor.fetchall(), "active")
    EndedRun.objects.filter(run__in=withdrawn_runs).delete()
    withdrawal.run_ids += withdrawn_runs


def _runs_to_keep(run_ids: Collection[int], busy: set[int]) -> set[int]:
    """Return the ``busy`` runs, which stay, and all runs before the last waiting run among these:
    an earlier run, executed again after the waiting run, would no longer be its input.
    """
    waiting = Run.objects.filter(pk__in=busy, state=RunState.WAITING) if busy else None
    last = waiting.aggregate(last=Max("pk"))["last"] if waiting is not None else None
    return busy | {run for run in run_ids if last is not None and run < last}


def _take_over(backfill_id: int, run_ids: list[int], withdrawal: _Withdrawal) -> None:
    """Let a backfill that goes on materialize itself the partitions that it had left to
    these runs.
    """
    ended_states = (*ENDED_STATES, BackfillState.CANCELING)
    rows = Backfill.objects.select_related("group").filter(pk=backfill_id)
    continuing_backfill = rows.exclude(state__in=ended_states).first()
    if continuing_backfill is not None and backfill_id not in withdrawal.visited_ids:
        # Runs first, then the rows of the backfill: the end of a run locks rows in this order.
        _withdraw_of(continuing_backfill, waiting_runs_of(continuing_backfill.group), withdrawal)
    parameters: dict[str, Any] = {
        "goes_on": continuing_backfill is not None, "runs": run_ids, "backfill": backfill_id,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_OVER, parameters)
        taken_rows = cursor.fetchall()
    if continuing_backfill:
        withdrawal.add_waiting(taken_rows, "skipped")
        withdrawal.continuing_ids.add(backfill_id)
