"""What becomes of partitions whose turn has come: made, or skipped for a reason."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection

import slicewise
from assets_app.models import SkipReason
from backfills_app.models import Backfill
from backfills_app.services.cuts import by_definition, current_part
from backfills_app.services.needs import gaps, lacking, there
from backfills_app.services.parts import Edge
from backfills_app.services.stored import StoredPart
from backfills_app.services.surveying import left_out, remakes_stale, standing
from partitions_app.rules import UpstreamGap

Partitions = slicewise.PartitionSet

# It was to be made here and was not: a retry makes it.
_FAILED = "(wanted.state IN ('failed', 'canceled') OR wanted.reason = 'upstream_failed')"
# How an upstream partition of the same backfill has ended, where that is not well.
_ENDED_BADLY = f"CASE WHEN {_FAILED} THEN 'failed' ELSE 'missing' END"
_BAD = f"""
({_FAILED} OR wanted.reason IN (
    'upstream_missing', 'upstream_nonexistent', 'wait_timeout', 'no_such_partition'
))
"""
# Made by this backfill, or by the run that it has left it to.
_MADE = """
(wanted.state = 'succeeded' OR wanted.reason = 'in_flight' AND EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.id = wanted.run_id AND run.state = 'succeeded'
))
"""
# What follows is stale then, or is as soon as a retry makes what failed: it shares its fate.
_MADE_OR_FAILED = f"({_MADE} OR {_FAILED})"
# Against being withdrawn: who does that locks the run first. Not waited for, since they wait for
# slices that are locked here.
_HOLDING = """
SELECT slice.key, run.id
FROM assets_app_assetpartition AS slice JOIN assets_app_run AS run ON run.id = slice.held_by_id
WHERE slice.asset_id = ANY(%s) AND slice.identity = %s AND slice.key = ANY(%s)
FOR KEY SHARE OF run SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The partitions to make, and the others by the reason for which they are skipped."""

    to_make: Partitions
    skipped: Mapping[SkipReason, Partitions]


def judge(backfill: Backfill, part: StoredPart, turn: Partitions) -> Verdict:
    """Decide which partitions to make and which to skip, once all before them here have ended."""
    policy = backfill.existing
    now = standing(part, turn, own=backfill.group_id)
    remade = _upstream_of(policy, part, now.materialized, _MADE_OR_FAILED)
    existing = left_out(policy, part, now, remade).existing
    gone = turn - existing - current_part(part.asset, turn)
    held = now.held - gone
    rest = turn - existing - gone - held
    failed, missing, nonexistent = _lacking(part, rest)
    return Verdict(
        rest - failed - missing - nonexistent,
        {
            SkipReason.EXISTS: existing,
            SkipReason.NO_SUCH_PARTITION: gone,
            SkipReason.IN_FLIGHT: held,
            SkipReason.UPSTREAM_FAILED: failed,
            SkipReason.UPSTREAM_MISSING: missing,
            SkipReason.UPSTREAM_NONEXISTENT: nonexistent,
        },
    )


def gaps_of(part: StoredPart, skipped: Partitions) -> tuple[UpstreamGap, ...]:
    """Return what does not exist, or not any more, of what these partitions need."""
    return gaps(part, skipped, _Upstream().available)


def existing_before_its_turn(policy: str, part: StoredPart, chosen: Partitions) -> Partitions:
    """Return the materialized partitions that are certain to stay: no partition upstream of them
    waits in this backfill.
    """
    now = standing(part, chosen)
    waits = _upstream_of(policy, part, now.materialized, "wanted.state = 'waiting'")
    return left_out(policy, part, now, waits).existing


def runs_holding(part: StoredPart, keys: list[str]) -> dict[str, int]:
    """Return the runs that hold these partitions, or partitions made together with them, by key.

    The runs are locked until the transaction ends. A run that another transaction is changing is
    left out.
    """
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_HOLDING, [[asset.pk for asset in part.outlets], part.asset.identity, keys])
        return dict(cursor.fetchall())


def _upstream_of(
    policy: str, part: StoredPart, materialized: Partitions, condition: str
) -> list[tuple[Edge, Partitions]]:
    """What decides of stale partitions: those upstream in this backfill of some condition."""
    if not remakes_stale(policy, part):
        return []
    return [
        (edge, _upstream_rows(edge, materialized, condition))
        for edge in part.edges
        if edge.part is not None
    ]


def _upstream_rows(edge: Edge, chosen: Partitions, condition: str) -> Partitions:
    upstream = edge.part
    assert isinstance(upstream, StoredPart)  # noqa: S101  (the parts of one backfill are stored)
    needed = edge.of_part(edge.needed(chosen))
    return upstream.rows(needed, condition=condition).get("", upstream.nothing)


def _lacking(part: StoredPart, rest: Partitions) -> tuple[Partitions, Partitions, Partitions]:
    """Those that could be made, had nothing upstream in this backfill failed; those for which
    something is missing; and those that need what does not exist.
    """
    if not part.edges or not rest:
        return part.nothing, part.nothing, part.nothing
    upstream = _Upstream()
    lacks = lacking(part, rest, upstream.available)
    if not upstream.has_failed:
        return part.nothing, lacks.all - lacks.nonexistent, lacks.nonexistent
    missing = lacking(part, rest, upstream.available_but_for_failures)
    return (
        lacks.all - missing.all,
        missing.all - missing.nonexistent,
        missing.nonexistent,
    )


class _Upstream:
    """What there is of what some partitions need, each looked up once."""

    def __init__(self) -> None:
        self.has_failed = False
        self._known: dict[Edge, tuple[Partitions, dict[str, Partitions]]] = {}

    def available(self, edge: Edge, needed: Partitions) -> Partitions:
        """What is there, but for what this backfill was to make and did not."""
        data, bad = self._look(edge, needed)
        if "failed" in bad and edge.reads_whatever_there_is:
            return data - data
        for some in bad.values():
            data -= some
        return data

    def available_but_for_failures(self, edge: Edge, needed: Partitions) -> Partitions:
        """The same, as if what has failed here had been made."""
        data, bad = self._look(edge, needed)
        if "missing" in bad:
            data -= bad["missing"]
        return data | bad["failed"] if "failed" in bad else data

    def _look(self, edge: Edge, needed: Partitions) -> tuple[Partitions, dict[str, Partitions]]:
        if edge not in self._known:
            bad = {}
            if isinstance(edge.part, StoredPart):
                rows = edge.part.rows(edge.of_part(needed), label=_ENDED_BADLY, condition=_BAD)
                bad = {label: by_definition(edge.definition, some) for label, some in rows.items()}
            self.has_failed = self.has_failed or "failed" in bad
            self._known[edge] = there(edge, needed), bad
        return self._known[edge]
