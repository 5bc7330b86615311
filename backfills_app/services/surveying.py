"""How the partitions of an asset stand, as sets, and which of them a backfill would leave out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.models import ProducerVersion
from backfills_app.models import ExistingPolicy
from backfills_app.services.parts import Part
from backfills_app.services.spans import spans
from backfills_app.services.staleness import stale

Partitions = slicewise.PartitionSet


_SETTLED = """
(slice.held_by_id IS NOT NULL OR slice.state = 'materialized' OR slice.state = 'failed' AND (
    %(own)s::bigint IS NULL OR NOT EXISTS (
        SELECT FROM assets_app_run AS last
        WHERE last.id = slice.last_run_id AND last.group_id = %(own)s::bigint
    )
))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Partitions by how they stand: in a settled state that no run holds, or held by one."""

    materialized: Partitions
    failed: Partitions
    held: Partitions


def standing(part: Part, within: Partitions, *, own: int | None = None) -> Standing:
    """Return the status of the partitions within a set: one statement, and one more where several
    assets are made together.

    Partitions that are made together are held together. A failure in a run of the group ``own``
    does not count as failed: a retry brings it back, whatever partitions were to be made.
    """
    found = spans(
        part.definition,
        [part.asset],
        within,
        label="CASE WHEN slice.held_by_id IS NULL THEN slice.state ELSE 'held' END",
        condition=_SETTLED,
        own=own,
    )
    held = found.get("held", part.nothing)
    others = [asset for asset in part.outlets if asset != part.asset]
    if others:
        held = held | _held(part, others, within)
    return Standing(
        materialized=found.get("materialized", part.nothing) - held,
        failed=found.get("failed", part.nothing) - held,
        held=held,
    )


def _held(part: Part, assets: Sequence[Any], within: Partitions) -> Partitions:
    found = spans(
        part.definition, assets, within,
        label="slice.asset_id::text", condition="slice.held_by_id IS NOT NULL",
    )  # fmt: skip
    every = part.nothing
    for each in found.values():
        every |= each
    return every


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Partitions that the policy leaves out, and what of the rest is stale or of older code."""

    existing: Partitions
    stale: Partitions
    older_code: Partitions


def remakes_stale(policy: str, part: Part) -> bool:
    """Return whether existing partitions are made again after a backfill by this policy has made
    some of their inputs.

    An unpartitioned asset is made again, whatever the policy: no partition of it can be missing,
    and the additions of this backfill to its inputs are missing in it.
    """
    return policy == ExistingPolicy.STALE or (
        part.definition is None and policy != ExistingPolicy.ALL
    )


def left_out(
    policy: str, part: Part, now: Standing, upstream: Sequence[tuple[Any, Partitions]]
) -> Left:
    """Return the existing partitions that stay as they are.

    ``upstream`` are edges, each with the upstream partitions that this backfill makes: a partition
    that needs one of them is stale then.
    """
    nothing = outdated = part.nothing
    if policy == ExistingPolicy.ALL:
        return Left(existing=nothing, stale=nothing, older_code=nothing)
    if remakes_stale(policy, part):
        for edge, made in upstream:
            outdated |= edge.needing(made, now.materialized)
    if policy != ExistingPolicy.STALE:
        stays = now.materialized - outdated
        if policy == ExistingPolicy.MISSING:
            stays |= now.failed
        return Left(existing=stays, stale=outdated, older_code=nothing)
    outdated |= stale(part, now.materialized)
    older = older_code(part, part.version, now.materialized)
    return Left(existing=now.materialized - outdated - older, stale=outdated, older_code=older)


def older_code(part: Part, version: ProducerVersion, within: Partitions) -> Partitions:
    """Return the partitions that another version of the code has made."""
    found = spans(
        part.definition, [part.asset], within,
        joins="""
JOIN assets_app_materialization AS made
    ON made.slice_id = slice.id AND made.version = slice.version
JOIN assets_app_producerversion AS code
    ON code.id = made.producer_version_id AND code.digest <> %(digest)s
""",
        digest=version.digest,
    )  # fmt: skip
    return found.get("", part.nothing)
