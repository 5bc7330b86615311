"""Backfills put on record in the state of some moment, as if runs had come that far."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts_app.models import User
from assets_app.models import AssetPartition, Run, RunState
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.services import request_from_text
from backfills_app.services.advance.expansion import expand
from backfills_app.services.bookkeeping.counting import derive_states
from tests.created_backfills import create_backfill


def written_backfill(
    user: User, asset: str = "raw_flights", start: str = "2013-01-01", end: str = "2013-01-31",
    **more: Any,
) -> Backfill:  # fmt: skip
    """Create a backfill whose partitions are written down, and of which nothing is materialized."""
    if "selection" in more:
        start = end = ""
    backfill = create_backfill(request_from_text(asset, start, end, **more), user=user)
    while expand(backfill.pk):
        pass
    backfill.refresh_from_db()
    return backfill


def runs_of(
    backfill: Backfill, state: str, number: int, *, error: str = "", seconds: float = 10.0
) -> list[Run]:
    """Create runs of the next partitions, one each, in a state."""
    scope = backfill.assets.get(position=0)
    waiting = list(scope.partitions.filter(state="waiting").order_by("position")[:number])
    now = timezone.now()
    ended = state in ("succeeded", "failed", "canceled")
    runs = Run.objects.bulk_create(
        Run(
            group=backfill.group, producer_version=scope.producer_version, asset=scope.asset,
            trigger="backfill", queue="backfill", state=RunState(state), selection=row.key,
            partition_count=1, error=error, error_kind="code" if error else "",
            started_at=now - timedelta(seconds=seconds * (number - place + 1)),
            ended_at=now - timedelta(seconds=seconds * (number - place)) if ended else None,
        )
        for place, row in enumerate(waiting)
    )  # fmt: skip
    after = state if ended else "active"
    for row, run in zip(waiting, runs, strict=True):
        row.state, row.run = after, run
    BackfillPartition.objects.bulk_update(waiting, ["state", "run"])
    counts = {
        "waiting": scope.waiting - number,
        after: getattr(scope, after) + number,
    }
    BackfillAsset.objects.filter(pk=scope.pk).update(**counts)
    derive_states([backfill.pk])
    backfill.refresh_from_db()
    return list(runs)


def skip(backfill: Backfill, reason: str, number: int) -> list[str]:
    """Skip the next partitions for a reason, and return the keys."""
    scope = backfill.assets.get(position=0)
    rows = list(scope.partitions.filter(state="waiting").order_by("position")[:number])
    named = scope.partitions.filter(pk__in=[row.pk for row in rows])
    named.update(state="skipped", reason=reason)
    counts = {
        "waiting": scope.waiting - number,
        "skipped": scope.skipped + number,
    }
    BackfillAsset.objects.filter(pk=scope.pk).update(**counts)
    derive_states([backfill.pk])
    backfill.refresh_from_db()
    return [row.key for row in rows]


def hold_partitions(run: Run, keys: list[str]) -> None:
    """Create partitions that a run makes now."""
    AssetPartition.objects.bulk_create(
        AssetPartition(asset=run.asset, identity=run.asset.identity, key=key, held_by=run)
        for key in keys
    )
