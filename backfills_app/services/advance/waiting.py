"""The readiness of waiting partitions: a partition may be admitted once all partitions before it in
the backfill have ended.

Readiness is computed after the end of upstream partitions and only for their downstream partitions:
the transaction that ends a run leaves a note (EndedRun), which the next admission consumes.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

import slicewise
from assets_app.models import TERMINAL_STATES
from backfills_app.models import Backfill, BackfillPartition, EndedRun
from backfills_app.services.partitions.positions import Range, ranges_of
from backfills_app.services.partitions.stored import StoredScope, stored_scopes
from partitions_app.rules import has_time

Settled = dict[StoredScope, slicewise.PartitionSet]

# Partitions that have not ended; partitions that another run materializes are waited for as well.
_OPEN = """
(backfill_partition.state IN ('waiting', 'active') OR backfill_partition.reason = 'in_flight'
    AND EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.id = backfill_partition.run_id
    AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
))
"""
_MARK_READY = """
UPDATE backfills_app_backfillpartition AS backfill_partition SET ready = true
FROM unnest(%s::int[], %s::int[]) AS position_range(first, stop)
WHERE backfill_partition.backfill_asset_id = %s AND backfill_partition.state = 'waiting'
  AND NOT backfill_partition.ready
  AND backfill_partition.position >= position_range.first
    AND backfill_partition.position < position_range.stop
"""
_NOTES_AT_ONCE = 1_000


def consume_ended_runs(backfill: Backfill, scopes: Sequence[StoredScope]) -> Settled:
    """Return the partitions that have ended since the last admission, by asset, and delete the
    notes.
    """
    if all(not scope.upstream_scopes for scope in scopes):
        return {}
    # A run that was retried has not ended: its note stays for its next end.
    notes = dict(
        EndedRun.objects.filter(backfill=backfill, run__state__in=TERMINAL_STATES)
        .order_by("pk")
        .values_list("pk", "run_id")[:_NOTES_AT_ONCE]
    )
    if not notes:
        return {}
    EndedRun.objects.filter(pk__in=notes).delete()
    by_row: dict[int, list[int]] = {}
    ended = BackfillPartition.objects.filter(
        run__in=notes.values(), backfill_asset__backfill=backfill
    )
    for row_id, position in ended.values_list("backfill_asset_id", "position").iterator():
        by_row.setdefault(row_id, []).append(position)
    return {
        scope: scope.positions.at(ranges_of(by_row[scope.row.pk]))
        for scope in scopes
        if scope.row.pk in by_row
    }


def record_awaited_runs(
    backfill: Backfill, scopes: Sequence[StoredScope], run_ids: Iterable[int]
) -> None:
    """Record the runs that partitions were left to, since downstream partitions wait for the ends
    of these runs: a run may end before this transaction does, without a note for this backfill.
    """
    if any(scope.upstream_scopes for scope in scopes):
        EndedRun.objects.bulk_create(
            EndedRun(backfill=backfill, run_id=run_id) for run_id in sorted(set(run_ids))
        )


def mark_ready_after(scopes: Iterable[StoredScope], settled: Mapping[StoredScope, object]) -> None:
    """Mark waiting partitions ready that waited for partitions which have ended."""
    for scope in scopes:
        candidates = scope.nothing
        for edge in scope.edges:
            upstream = edge.upstream_scope
            ended = settled.get(upstream) if isinstance(upstream, StoredScope) else None
            if isinstance(ended, slicewise.PartitionSet):
                candidates |= edge.needing(ended, scope.whole)
        mark_ready(scope, candidates)


def mark_all_ready(scopes: Iterable[StoredScope]) -> None:
    """Mark every waiting partition ready that no other partition of the backfill blocks, without
    regard to notes: after expansion, and after partitions were put back to waiting.
    """
    for scope in scopes:
        if scope.upstream_scopes:
            mark_ready(scope, scope.whole)


def recheck(backfill: Backfill) -> None:
    """Compute again which waiting partitions are ready, since some ended partitions wait again.

    Call under the backfill's lock.
    """
    if not backfill.assets.filter(waiting__gt=0).exists():
        return
    scopes = stored_scopes(backfill)
    for scope in scopes:
        if scope.upstream_scopes:
            scope.row.partitions.filter(state="waiting").update(ready=False)
    mark_all_ready(scopes)


def mark_ready(scope: StoredScope, candidates: slicewise.PartitionSet) -> None:
    """Mark the partitions ready that no other partition of this backfill blocks."""
    for edge in scope.edges:
        upstream = edge.upstream_scope
        if not isinstance(upstream, StoredScope) or not candidates:
            continue
        if (
            upstream.row.waiting
            and has_time(upstream.definition)
            and not has_time(scope.definition)
        ):
            # All partitions of a time are needed, and some of them wait: no query is necessary.
            return
        needed = upstream.covered(edge.needed(candidates))
        open_partitions = upstream.rows(needed, condition=_OPEN).get("")
        if open_partitions:
            candidates -= edge.needing(open_partitions, candidates)
    _mark_ready(scope, scope.positions.ranges(candidates))


def _mark_ready(scope: StoredScope, ranges: Sequence[Range]) -> None:
    if ranges:
        firsts, stops = (list(column) for column in zip(*ranges, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(_MARK_READY, [firsts, stops, scope.row.pk])
