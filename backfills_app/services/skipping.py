"""Partitions that a backfill skipped, with the upstream partitions that do not exist."""

from collections.abc import Mapping
from dataclasses import replace

from assets_app.models import SkipReason
from backfills_app.models import Backfill
from backfills_app.queries.skips import Skipped, skipped_by_reason
from backfills_app.services.judging import gaps_of
from backfills_app.services.stored import StoredPart, stored_parts
from partitions_app.rules import UpstreamGap

_NONEXISTENT = SkipReason.UPSTREAM_NONEXISTENT


def skips_of(backfill: Backfill) -> list[Skipped]:
    """Return the skipped partitions by asset and reason, as the preview would say why: two
    statements, and those that read the assets of the backfill and what there is of them where
    upstream partitions do not exist.
    """
    skips = skipped_by_reason(backfill.assets.all())
    if all(skip.reason != _NONEXISTENT for skip in skips):
        return skips
    try:
        parts = {part.asset.name: part for part in stored_parts(backfill)}
    except ValueError:
        # Frozen code that asks for keys which are gone: the page of the backfill says so.
        return skips
    return [replace(skip, gaps=_gaps_of(skip, parts)) for skip in skips]


def _gaps_of(skip: Skipped, parts: Mapping[str, StoredPart]) -> tuple[UpstreamGap, ...]:
    part = parts.get(skip.asset)
    if part is None or skip.reason != _NONEXISTENT:
        return ()
    condition = f"wanted.reason = '{_NONEXISTENT.value}'"
    chosen = part.rows(part.whole, condition=condition).get("", part.nothing)
    return tuple(gap for gap in gaps_of(part, chosen) if gap.reason)
