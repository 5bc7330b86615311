"""The status of an asset's partitions, as sets, and the partitions that are skipped for their own
status.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.models import ProducerVersion, SkipReason
from assets_app.queries.partition_spans import spans
from backfills_app.models import ExistingPolicy
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.partitions.staleness import stale

Partitions = slicewise.PartitionSet


_SETTLED = """
(partition.held_by_id IS NOT NULL OR partition.state = 'materialized'
 OR partition.state = 'failed' AND (
    %(own)s::bigint IS NULL OR NOT EXISTS (
        SELECT FROM assets_app_run AS last
        WHERE last.id = partition.last_run_id AND last.group_id = %(own)s::bigint
    )
))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatuses:
    """Partitions by status: ``materialized`` and ``failed`` are not held by a run, ``held`` are."""

    materialized: Partitions
    failed: Partitions
    held: Partitions


def partition_statuses(
    scope: AssetScope, within: Partitions, *, own: int | None = None
) -> PartitionStatuses:
    """Return the status of the partitions within a set: one query, and one more where several
    assets are written together.

    Partitions that are written together are held together. A failure in a run of the group ``own``
    does not count as failed: a retry takes such a partition up again under any policy.
    """
    by_label = spans(
        scope.definition,
        [scope.asset],
        within,
        label="CASE WHEN partition.held_by_id IS NULL THEN partition.state ELSE 'held' END",
        condition=_SETTLED,
        own=own,
    )
    held_partitions = by_label.get("held", scope.nothing)
    other_outlets = [asset for asset in scope.outlets if asset != scope.asset]
    if other_outlets:
        held_partitions = held_partitions | _held(scope, other_outlets, within)
    return PartitionStatuses(
        materialized=by_label.get("materialized", scope.nothing) - held_partitions,
        failed=by_label.get("failed", scope.nothing) - held_partitions,
        held=held_partitions,
    )


def _held(scope: AssetScope, assets: Sequence[Any], within: Partitions) -> Partitions:
    by_asset = spans(
        scope.definition, assets, within,
        label="partition.asset_id::text", condition="partition.held_by_id IS NOT NULL",
    )  # fmt: skip
    held_partitions = scope.nothing
    for partitions in by_asset.values():
        held_partitions |= partitions
    return held_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedByPolicy:
    """The existing partitions that the policy skips; of the rest, the stale partitions and the
    partitions of older code.
    """

    existing: Partitions
    stale: Partitions
    older_code: Partitions


def remakes_stale(policy: str, scope: AssetScope) -> bool:
    """Return whether existing partitions are materialized again after a backfill under this policy
    has materialized some of their inputs.

    An unpartitioned asset is materialized again under any policy: no partition of the asset can be
    missing, and the additions of this backfill to the inputs are missing in the asset.
    """
    return policy == ExistingPolicy.STALE or (
        scope.definition is None and policy != ExistingPolicy.ALL
    )


def skipped_by_policy(
    policy: str,
    scope: AssetScope,
    status: PartitionStatuses,
    upstream: Sequence[tuple[Any, Partitions]],
) -> SkippedByPolicy:
    """Return the existing partitions that the policy skips, which stay unchanged.

    ``upstream`` are edges, each with the upstream partitions that this backfill materializes: a
    partition that needs one of these is stale then.
    """
    no_partitions = outdated = scope.nothing
    if policy == ExistingPolicy.ALL:
        return SkippedByPolicy(
            existing=no_partitions, stale=no_partitions, older_code=no_partitions
        )
    if remakes_stale(policy, scope):
        for edge, upstream_partitions in upstream:
            outdated |= edge.needing(upstream_partitions, status.materialized)
    if policy != ExistingPolicy.STALE:
        existing = status.materialized - outdated
        if policy == ExistingPolicy.MISSING:
            existing |= status.failed
        return SkippedByPolicy(existing=existing, stale=outdated, older_code=no_partitions)
    outdated |= stale(scope, status.materialized)
    older = older_code(scope, scope.version, status.materialized)
    return SkippedByPolicy(
        existing=status.materialized - outdated - older, stale=outdated, older_code=older
    )


@dataclass(frozen=True, slots=True)
class SkippedByStatus:
    """The partitions skipped for their own status, by reason, and the other partitions (``rest``),
    which are skipped only if upstream partitions are missing.
    """

    by_reason: dict[SkipReason, Partitions]
    rest: Partitions


def skipped_by_status(
    requested: Partitions, *, existing: Partitions, removed: Partitions, in_flight: Partitions
) -> SkippedByStatus:
    """Return the partitions skipped for the first reason that applies: data exists, the definition
    lost the partition, another run holds it. Preview and admission have this order.
    """
    by_reason: dict[SkipReason, Partitions] = {}
    rest = requested
    for reason, partitions in (
        (SkipReason.EXISTS, existing),
        (SkipReason.NO_SUCH_PARTITION, removed),
        (SkipReason.IN_FLIGHT, in_flight),
    ):
        by_reason[reason] = rest & partitions
        rest -= partitions
    return SkippedByStatus(by_reason, rest)


def older_code(scope: AssetScope, version: ProducerVersion, within: Partitions) -> Partitions:
    """Return the partitions that other code than this version has materialized."""
    by_label = spans(
        scope.definition, [scope.asset], within,
        joins="""
JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
JOIN assets_app_producerversion AS code
    ON code.id = materialization.producer_version_id AND code.digest <> %(digest)s
""",
        digest=version.digest,
    )  # fmt: skip
    return by_label.get("", scope.nothing)
