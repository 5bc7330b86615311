"""Which waiting partitions may be admitted: those of which all that comes before them in their
backfill has come to an end.

Looked at for what something upstream has ended of, never for all: whoever ends a run leaves a note
(EndedRun), and the next admission sees to it.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

import slicewise
from assets_app.models import TERMINAL_STATES
from backfills_app.models import Backfill, BackfillPartition, EndedRun
from backfills_app.services.places import Range, ranges_of
from backfills_app.services.stored import StoredPart, stored_parts
from partitions_app.rules import has_time

Settled = dict[StoredPart, slicewise.PartitionSet]

# What has not come to an end; what another run makes is waited for as well.
_OPEN = """
(wanted.state IN ('waiting', 'active') OR wanted.reason = 'in_flight' AND EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.id = wanted.run_id
    AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
))
"""
_LET_GO = """
UPDATE backfills_app_backfillpartition AS wanted SET ready = true
FROM unnest(%s::int[], %s::int[]) AS free(first, stop)
WHERE wanted.backfill_asset_id = %s AND wanted.state = 'waiting' AND NOT wanted.ready
  AND wanted.position >= free.first AND wanted.position < free.stop
"""
_NOTES_AT_ONCE = 1_000


def take_notes(backfill: Backfill, parts: Sequence[StoredPart]) -> Settled:
    """Return the partitions that have ended since the last look, by asset, and delete the notes."""
    if all(not part.upstream_parts for part in parts):
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
        part: part.places.at(ranges_of(by_row[part.row.pk]))
        for part in parts
        if part.row.pk in by_row
    }


def watch(backfill: Backfill, parts: Sequence[StoredPart], run_ids: Iterable[int]) -> None:
    """Record the runs that partitions were left to, since downstream partitions wait for the ends
    of these runs: a run may end before this transaction does, and not see it.
    """
    if any(part.upstream_parts for part in parts):
        EndedRun.objects.bulk_create(
            EndedRun(backfill=backfill, run_id=run_id) for run_id in sorted(set(run_ids))
        )


def let_go_after(parts: Iterable[StoredPart], settled: Mapping[StoredPart, object]) -> None:
    """Let those be admitted that waited for what has come to an end."""
    for part in parts:
        concerned = part.nothing
        for edge in part.edges:
            ended = settled.get(edge.part) if isinstance(edge.part, StoredPart) else None
            if isinstance(ended, slicewise.PartitionSet):
                concerned |= edge.needing(ended, part.whole)
        let_go(part, concerned)


def let_go_all(parts: Iterable[StoredPart]) -> None:
    """Mark every waiting partition ready that no other of the backfill blocks, whatever has ended:
    after expansion, and after partitions were put back to waiting.
    """
    for part in parts:
        if part.upstream_parts:
            let_go(part, part.whole)


def look_again(backfill: Backfill) -> None:
    """Check again which waiting partitions are ready, since ended partitions wait once more.

    Call under the backfill's lock.
    """
    if not backfill.assets.filter(waiting__gt=0).exists():
        return
    parts = stored_parts(backfill)
    for part in parts:
        if part.upstream_parts:
            part.row.partitions.filter(state="waiting").update(ready=False)
    let_go_all(parts)


def let_go(part: StoredPart, concerned: slicewise.PartitionSet) -> None:
    """Let those of the partitions be admitted that nothing of this backfill holds up."""
    for edge in part.edges:
        upstream = edge.part
        if not isinstance(upstream, StoredPart) or not concerned:
            continue
        if upstream.row.waiting and has_time(upstream.definition) and not has_time(part.definition):
            # All of a time is needed, of which something waits: no need to look for it.
            return
        needed = edge.of_part(edge.needed(concerned))
        open_ones = upstream.rows(needed, condition=_OPEN).get("")
        if open_ones:
            concerned -= edge.needing(open_ones, concerned)
    _mark(part, part.places.ranges(concerned))


def _mark(part: StoredPart, ranges: Sequence[Range]) -> None:
    if ranges:
        firsts, stops = (list(column) for column in zip(*ranges, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(_LET_GO, [firsts, stops, part.row.pk])
