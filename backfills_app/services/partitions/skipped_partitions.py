"""Partitions that a backfill skipped, with the upstream partitions that do not exist, for pages and
API. `queries/skips.py` counts the partitions; `decisions.py` decides which partitions to skip.
"""

from collections.abc import Mapping
from dataclasses import replace

from assets_app.models import SkipReason
from backfills_app.models import Backfill
from backfills_app.queries.skips import Skipped, skipped_by_reason
from backfills_app.services.partitions.decisions import upstream_gaps_of
from backfills_app.services.partitions.stored import StoredScope, stored_scopes
from partitions_app.rules import UpstreamGap

_NONEXISTENT = SkipReason.UPSTREAM_NONEXISTENT


def skips_of(backfill: Backfill) -> list[Skipped]:
    """Return the skipped partitions by asset and reason, in the words of the preview.

    Two queries; where upstream partitions do not exist, also the queries that read the assets of
    the backfill and their materialized partitions.
    """
    skips = skipped_by_reason(backfill.assets.all())
    if all(skip.reason != _NONEXISTENT for skip in skips):
        return skips
    try:
        scopes = {scope.asset.name: scope for scope in stored_scopes(backfill)}
    except ValueError:
        # The frozen code asks for keys that were removed, as the page of the backfill says.
        return skips
    return [replace(skip, upstream_gaps=_upstream_gaps_of(skip, scopes)) for skip in skips]


def _upstream_gaps_of(skip: Skipped, scopes: Mapping[str, StoredScope]) -> tuple[UpstreamGap, ...]:
    scope = scopes.get(skip.asset)
    if scope is None or skip.reason != _NONEXISTENT:
        return ()
    condition = f"backfill_partition.reason = '{_NONEXISTENT.value}'"
    chosen = scope.rows(scope.whole, condition=condition).get("", scope.nothing)
    return tuple(
        upstream_gap for upstream_gap in upstream_gaps_of(scope, chosen) if upstream_gap.reason
    )
