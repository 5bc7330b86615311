"""Records of late inputs: inputs that were missing or old when a schedule made a partition due."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Q

from assets_app.models import (
    AssetDependency,
    AssetPartition,
    LateEffect,
    LateInput,
    LateReason,
    Target,
)
from slicewise.partitions import PartitionRow

FRESH_AGAIN = datetime(9999, 1, 1, tzinfo=UTC)
"""In place of the time at which a partition is examined again: when an asset that is to be fresh is
written."""

# The late inputs of the runs that made the present versions.
_PRESENT = """
SELECT own.key, late.upstream_id, late.effect
FROM assets_app_assetpartition AS own
JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = own.id AND materialization.version = own.version
JOIN assets_app_lateinput AS late
    ON late.run_id = materialization.run_id AND late.key = own.key COLLATE "C"
WHERE own.asset_id = %s AND own.identity = %s AND own.key = ANY(%s) AND own.version > 0
"""


class LateStatus(NamedTuple):
    """An upstream asset that is late for a due partition."""

    upstream_id: int
    reason: LateReason
    # The number of missing partitions, and the first missing keys.
    missing: int
    keys: Sequence[str]
    # When the newest of the needed partitions was materialized.
    newest_at: datetime | None
    # The schedule asks that the asset be fresh.
    is_of_fresh: bool = False


@dataclass(frozen=True, slots=True)
class PresentLateInputs:
    """The late inputs of present versions: effect by key and upstream asset."""

    effects: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, target: Target, rows: Sequence[PartitionRow]) -> "PresentLateInputs":
        """Read the late inputs of the present versions of these partitions: one statement."""
        with connection.cursor() as cursor:
            keys = [row.key for row in rows]
            cursor.execute(_PRESENT, [target.asset.pk, target.identity, keys])
            return cls({(key, pk): effect for key, pk, effect in cursor.fetchall()})

    def effect(self, key: str, upstream_id: int) -> str | None:
        """Return the effect of a late input when the input comes; None if the input was not
        late.
        """
        return self.effects.get((key, upstream_id))


def record_late_inputs(
    partitions: Iterable[tuple[int, str, LateEffect, Sequence[LateStatus]]],
) -> None:
    """Record the late inputs of queued partitions: run, key, effect, and the late inputs."""
    LateInput.objects.bulk_create(
        [
            LateInput(
                run_id=run_id,
                key=key,
                upstream_id=status.upstream_id,
                reason=status.reason,
                effect=effect,
                missing=status.missing,
                keys=list(status.keys),
                newest_at=status.newest_at,
            )
            for run_id, key, effect, late in partitions
            for status in late
        ],
        batch_size=1_000,
    )


def examine_waiting_for(upstream_ids: Iterable[int], now: datetime) -> dict[int, set[int]]:
    """Have the partitions examined now that wait for one of these assets to be fresh. Return the
    assets of partitions that another transaction has locked, each with the fresh assets: the caller
    calls again, as the partitions may wait for no other time.

    Partitions that wait for the end of a window go on waiting, and partitions that a run holds are
    examined after the run, which may have read an older version. Partitions of a paused asset go on
    waiting for the next write.
    """
    upstream_by_asset: dict[int, set[int]] = {}
    # The marks of a paused asset stay, for the list of missed partitions and for a later write.
    dependencies = AssetDependency.objects.filter(
        upstream__in=upstream_ids, fresh=True, downstream__paused=False
    )
    for asset_id, upstream_id in dependencies.values_list("downstream_id", "upstream_id"):
        upstream_by_asset.setdefault(asset_id, set()).add(upstream_id)
    if not upstream_by_asset:
        return {}
    waiting = AssetPartition.objects.filter(
        Q(window_end=None) | Q(window_end__lte=now),
        asset__in=upstream_by_asset, due_again=True, due_at__gt=now,
    )  # fmt: skip
    rows = waiting.order_by("pk").select_for_update(of=("self",), skip_locked=True)
    free_ids = list(rows.values_list("pk", flat=True))
    AssetPartition.objects.filter(pk__in=free_ids).update(due_at=now)
    # The rows above wait no more: only rows of other transactions are left.
    locked_assets = waiting.order_by().values_list("asset", flat=True).distinct()
    return {asset_id: upstream_by_asset[asset_id] for asset_id in locked_assets}


def keys_waiting_for_fresh(target: Target, most: int) -> list[str]:
    """Return the keys of partitions that wait for an asset to be fresh: at most so many, the newest
    windows first.
    """
    rows = AssetPartition.objects.filter(
        asset=target.asset.pk, identity=target.identity, due_again=True, due_at=FRESH_AGAIN
    )
    return list(rows.order_by("-window_start", "key").values_list("key", flat=True)[:most])
