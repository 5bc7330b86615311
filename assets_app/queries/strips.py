"""The latest partitions of assets as small drawings: the partitions that should exist by now."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from assets_app.models import Asset
from assets_app.queries.outdated import OUTDATED_AMONG, candidates_by_asset, stale_candidates
from assets_app.queries.present import span_of
from partitions_app.labels import label_of
from partitions_app.state_badges import (
    MATERIALIZED,
    MISSING,
    STALE,
    StateBadge,
    badge_of_partition,
)
from slicewise.keys import WHOLE
from slicewise.partitions import partitions_of_last_windows
from slicewise_server.web.kept_counts import kept_count

STRIP_LENGTH = 60
# Where a bar begins, and how high the bar is, of 10.
_HEIGHTS = {"failed": (5, 5), "overdue": (0, 5), "queued": (3, 4), "stale": (2, 8)}
# Most late partitions have no row of their own.
_STATES = """
SELECT requested.asset_id, requested.key, coalesce(partition.state, 'missing'), run.state,
    CASE WHEN coalesce(partition.version, 0) > 0 OR late.id IS NULL THEN ''
        WHEN late.overdue_at <= %(now)s THEN 'overdue'
        ELSE 'late'
    END
FROM unnest(%(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[])
    AS requested(asset_id, identity, key)
LEFT JOIN assets_app_assetpartition AS partition ON partition.asset_id = requested.asset_id
    AND partition.identity = requested.identity AND partition.key = requested.key
LEFT JOIN assets_app_run AS run ON run.id = partition.held_by_id
LEFT JOIN assets_app_latepartition AS late ON late.asset_id = requested.asset_id
    AND late.identity = requested.identity AND late.key = requested.key
    AND late.late_at <= %(now)s AND late.asset_id = ANY(%(declared)s)
WHERE partition.id IS NOT NULL OR late.id IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class StripPath:
    """The bars of one look as the data of a path, with a unit for each partition."""

    css: str
    data: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The looks of the latest expected partitions of an asset, oldest first."""

    looks: Sequence[StateBadge]
    first: str
    last: str

    @property
    def text(self) -> str:
        """``2013-01-01 to 2013-03-01: 55 materialized, 5 missing``."""
        counts = Counter(look.label.lower() for look in self.looks)
        counted = ", ".join(f"{number} {label}" for label, number in counts.items())
        span = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{span}: {counted}" if span else counted

    @property
    def offset(self) -> int:
        """Where the drawing begins, so that the latest partition is at the right end."""
        return len(self.looks) - STRIP_LENGTH

    @property
    def paths(self) -> Iterator[StripPath]:
        """The bars by look. A failed one is half as high, an overdue one hangs from the top, a
        queued one is low, and a stale one leaves the top free, so that colour alone does not tell.
        """
        for look in dict.fromkeys(self.looks):
            top, height = _HEIGHTS.get(look.name, (0, 10))
            bars = [
                f"M{position} {top}h.7v{height}h-.7z"
                for position, candidate in enumerate(self.looks)
                if candidate is look
            ]
            yield StripPath(look.name, "".join(bars))


def strips_of(
    assets: Sequence[Asset],
    starts: Mapping[int, datetime | None],
    stale_ids: Container[int],
    now: datetime,
) -> dict[int, Strip]:
    """Return the strip of each asset that has expected partitions, by asset id: one statement, and
    at most three for all assets of ``stale_ids``, which have stale partitions.

    ``starts`` are the starts of the first partitions of definitions without a start.
    """
    keys = {asset.pk: _latest_keys(asset, starts.get(asset.pk), now) for asset in assets}
    looks = _looks(assets, keys, now)
    looks |= _stale_looks([asset for asset in assets if asset.pk in stale_ids], looks)
    return {
        asset.pk: Strip(
            [looks.get((asset.pk, key), MISSING) for key in keys[asset.pk]],
            label_of(asset.definition, keys[asset.pk][0]),
            label_of(asset.definition, keys[asset.pk][-1]),
        )
        for asset in assets
        if keys[asset.pk]
    }


def _latest_keys(asset: Asset, start: datetime | None, now: datetime) -> list[str]:
    definition = asset.definition
    if definition is None:
        return [WHOLE.text]
    time_dimension = definition.time_dimension
    if time_dimension is None:
        return [key.text for key in _last(definition.keys())]
    _, end = span_of(asset)
    until = now if end is None else min(now, end)
    segment_count = max(definition.space.segments.count, 1)
    windows = -(-STRIP_LENGTH // segment_count)
    latest = _last(partitions_of_last_windows(definition, until, windows))
    if time_dimension.start is not None:
        return [key.text for key in latest]
    # Before the activation, or the earliest partition, no partition is expected.
    active = time_dimension.window_at(asset.activated_at)
    since = min(moment for moment in (active and active.start, start, asset.activated_at) if moment)
    return [key.text for key in latest if key.time is None or key.time.start >= since]


def _last(keys: Any) -> Any:
    return keys[max(0, len(keys) - STRIP_LENGTH) :]


def _looks(
    assets: Sequence[Asset], keys: Mapping[int, Sequence[str]], now: datetime
) -> dict[tuple[int, str], StateBadge]:
    """Return the looks by asset id and key, without partitions that are only missing."""
    identities = {asset.pk: asset.identity for asset in assets}
    requested = [
        (pk, identities[pk], key) for pk, keys_of_asset in keys.items() for key in keys_of_asset
    ]
    if not requested:
        return {}
    columns = zip(
        ("assets", "identities", "keys"), map(list, zip(*requested, strict=True)), strict=True
    )
    with connection.cursor() as cursor:
        declared = [asset.pk for asset in assets if asset.active]
        cursor.execute(_STATES, {"now": now, "declared": declared, **dict(columns)})
        return {
            (asset_id, key): badge_of_partition(state, run_state, lateness=lateness)
            for asset_id, key, state, run_state, lateness in cursor.fetchall()
        }


def _stale_looks(
    assets: Sequence[Asset], looks: Mapping[tuple[int, str], StateBadge]
) -> dict[tuple[int, str], StateBadge]:
    """Return the looks of the stale partitions among the materialized ones. Where this takes long,
    the keys are kept for a while: a list of assets is polled.
    """
    by_id = {asset.pk: asset for asset in assets}
    pairs = [pair for pair, look in looks.items() if look is MATERIALIZED and pair[0] in by_id]
    if not pairs:
        return {}

    def stale_keys() -> list[tuple[int, str]]:
        values = {
            "assets": [pk for pk, _ in pairs],
            "identities": [by_id[pk].identity for pk, _ in pairs],
            "keys": [key for _, key in pairs],
        }
        candidates = candidates_by_asset(OUTDATED_AMONG, values)
        stale = stale_candidates({by_id[pk]: rows for pk, rows in candidates.items()})
        return [(pk, key) for pk, stale_of_asset in stale.items() for key in stale_of_asset]

    ids = ",".join(f"{asset.pk}:{asset.identity}" for asset in assets)
    kept_keys = (tuple(pair) for pair in kept_count(f"stale strips {ids}", stale_keys))
    return {pair: STALE for pair in kept_keys if looks.get(pair) is MATERIALIZED}
