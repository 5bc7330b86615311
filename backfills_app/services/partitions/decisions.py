"""The decision on a batch of partitions: which to materialize, and which to skip for a reason."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection

import slicewise
from assets_app.models import SkipReason
from assets_app.queries.clock import database_now
from backfills_app.models import Backfill, ExistingPolicy
from backfills_app.services.partitions.blocked_partitions import (
    blocked_partitions,
    materialized,
    upstream_gaps,
)
from backfills_app.services.partitions.definition_conversion import (
    by_definition,
    in_present_definition,
)
from backfills_app.services.partitions.frozen_assets import BackfillEdge
from backfills_app.services.partitions.partition_statuses import (
    partition_statuses,
    remakes_stale,
    skipped_by_policy,
    skipped_by_status,
)
from backfills_app.services.partitions.stored import StoredScope
from partitions_app.rules import UpstreamGap

Partitions = slicewise.PartitionSet

# In these conditions for `StoredScope.rows`, `backfill_partition` is a row of `BackfillPartition`,
# mostly of an upstream asset.
#
# The backfill was to materialize the partition and did not: a retry does.
_FAILED = """
(backfill_partition.state IN ('failed', 'canceled')
 OR backfill_partition.reason = 'upstream_failed')
"""
# The outcome of an upstream partition in the same backfill that ended without success.
_ENDED_BADLY = f"CASE WHEN {_FAILED} THEN 'failed' ELSE 'missing' END"
# Not available to downstream partitions, whatever older data exists.
_BAD = f"""
({_FAILED} OR backfill_partition.reason IN (
    'upstream_missing', 'upstream_nonexistent', 'wait_timeout', 'no_such_partition'
))
"""
# Materialized by this backfill, or by the run that the backfill left the partition to.
_MADE = """
(backfill_partition.state = 'succeeded' OR backfill_partition.reason = 'in_flight' AND EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.id = backfill_partition.run_id
        AND run.state = 'succeeded'
))
"""
# A downstream partition is stale then, or becomes stale as soon as a retry materializes the failed
# partition: it is treated as the failed partition's follower, not as existing.
_MADE_OR_FAILED = f"({_MADE} OR {_FAILED})"
# Keeps runs from being withdrawn: a withdrawal locks the run first. Locked runs are skipped and not
# waited for, since their transactions wait for partitions that are locked here.
_HOLDING = """
SELECT partition.key, run.id
FROM assets_app_assetpartition
    AS partition JOIN assets_app_run AS run ON run.id = partition.held_by_id
WHERE partition.asset_id = ANY(%s) AND partition.identity = %s AND partition.key = ANY(%s)
FOR KEY SHARE OF run SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The partitions to materialize, and the partitions to skip by reason."""

    to_materialize: Partitions
    skipped: Mapping[SkipReason, Partitions]


def decide(backfill: Backfill, scope: StoredScope, batch: Partitions) -> BatchDecision:
    """Decide which partitions of a batch to materialize and which to skip, once all partitions
    before the batch in this backfill have ended.
    """
    policy = backfill.existing
    status = partition_statuses(scope, batch, own=backfill.group_id)
    remade = _upstream_of(policy, scope, status.materialized, _MADE_OR_FAILED)
    existing = skipped_by_policy(policy, scope, status, remade).existing
    skipped = skipped_by_status(
        batch,
        existing=existing,
        removed=batch - in_present_definition(scope.present, batch),
        in_flight=status.held,
    )
    blocked = _blocked_by_reason(scope, skipped.rest)
    to_materialize = skipped.rest
    for partitions in blocked.values():
        to_materialize -= partitions
    return BatchDecision(to_materialize, {**skipped.by_reason, **blocked})


def upstream_gaps_of(scope: StoredScope, skipped: Partitions) -> tuple[UpstreamGap, ...]:
    """Return the upstream partitions that these partitions need and that do not exist, or do not
    exist any more.
    """
    return upstream_gaps(scope, skipped, _Upstream().available)


def certain_to_stay(backfill: Backfill, scope: StoredScope, chosen: Partitions) -> Partitions:
    """Return the materialized partitions that are certain to stay: no upstream partition waits in
    this backfill. No partition is certain before a backfill of stale partitions starts.
    """
    policy = backfill.existing
    # Until the start, runs may materialize upstream partitions again.
    if policy == ExistingPolicy.STALE and starts_later(backfill):
        return scope.nothing
    status = partition_statuses(scope, chosen)
    waits = _upstream_of(policy, scope, status.materialized, "backfill_partition.state = 'waiting'")
    return skipped_by_policy(policy, scope, status, waits).existing


def starts_later(backfill: Backfill) -> bool:
    """Return whether no run of the backfill may start yet, by the clock of the database."""
    return backfill.scheduled_date is not None and backfill.scheduled_date > database_now()


def runs_holding(scope: StoredScope, keys: list[str]) -> dict[str, int]:
    """Return the runs that hold these partitions, or partitions written together with them, by key.

    The runs are locked until the transaction ends. A run that another transaction is changing is
    left out.
    """
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            _HOLDING, [[asset.pk for asset in scope.outlets], scope.asset.identity, keys]
        )
        return dict(cursor.fetchall())


def _upstream_of(
    policy: str, scope: StoredScope, chosen: Partitions, condition: str
) -> list[tuple[BackfillEdge, Partitions]]:
    """Return, by edge, the upstream partitions in this backfill that meet a condition, where these
    decide on stale partitions.
    """
    if not remakes_stale(policy, scope):
        return []
    return [
        (edge, _upstream_rows(edge, chosen, condition))
        for edge in scope.edges
        if edge.upstream_scope is not None
    ]


def _upstream_rows(edge: BackfillEdge, chosen: Partitions, condition: str) -> Partitions:
    upstream = edge.upstream_scope
    assert isinstance(upstream, StoredScope)  # noqa: S101  (upstream assets of one backfill are stored)
    needed = upstream.covered(edge.needed(chosen))
    return upstream.rows(needed, condition=condition).get("", upstream.nothing)


def _blocked_by_reason(scope: StoredScope, rest: Partitions) -> Mapping[SkipReason, Partitions]:
    """Return the partitions blocked only by failures upstream in this backfill, the partitions with
    missing upstream data, and the partitions that need nonexistent ones.
    """
    if not scope.edges or not rest:
        return {}
    upstream = _Upstream()
    blocked = blocked_partitions(scope, rest, upstream.available)
    if not upstream.has_failed:
        return blocked.by_reason
    blocked_by_data = blocked_partitions(scope, rest, upstream.available_but_for_failures)
    return {
        SkipReason.UPSTREAM_FAILED: blocked.all - blocked_by_data.all,
        **blocked_by_data.by_reason,
    }


class _Upstream:
    """The upstream partitions that are available, with one query for each edge."""

    def __init__(self) -> None:
        self.has_failed = False
        self._known: dict[BackfillEdge, tuple[Partitions, dict[str, Partitions]]] = {}

    def available(self, edge: BackfillEdge, needed: Partitions) -> Partitions:
        """Return the materialized upstream partitions, without partitions that this backfill was to
        materialize and did not.
        """
        data, bad = self._look(edge, needed)
        if "failed" in bad and edge.reads_whatever_exists:
            return data - data
        for partitions in bad.values():
            data -= partitions
        return data

    def available_but_for_failures(self, edge: BackfillEdge, needed: Partitions) -> Partitions:
        """Return the available upstream partitions, as if the failures in this backfill had
        succeeded.
        """
        data, bad = self._look(edge, needed)
        if "missing" in bad:
            data -= bad["missing"]
        return data | bad["failed"] if "failed" in bad else data

    def _look(
        self, edge: BackfillEdge, needed: Partitions
    ) -> tuple[Partitions, dict[str, Partitions]]:
        if edge not in self._known:
            bad = {}
            upstream = edge.upstream_scope
            if isinstance(upstream, StoredScope):
                rows = upstream.rows(upstream.covered(needed), label=_ENDED_BADLY, condition=_BAD)
                bad = {
                    label: by_definition(edge.upstream, partitions)
                    for label, partitions in rows.items()
                }
            self.has_failed = self.has_failed or "failed" in bad
            self._known[edge] = materialized(edge, needed), bad
        return self._known[edge]
