"""Accepts a backfill: one insert, whatever its size.

What it comes to is worked out by the control worker.
"""

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts_app import audit
from accounts_app.models import User
from assets_app.models import GroupKind, Queue, RunGroup
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services.checking import Checked, checked
from backfills_app.services.messages import nudge_advance
from backfills_app.services.requests import BackfillRequest


def create_backfill(request: BackfillRequest, *, user: User) -> Backfill:
    """Accept the request, or refuse it whole: see check_backfill for what it raises.

    The asset's code is frozen: every run of the backfill uses the version that is in force now.
    """
    found = checked(request, user=user)
    with transaction.atomic():
        backfill = _insert(request, found, user)
        BackfillAsset.objects.bulk_create(
            BackfillAsset(
                backfill=backfill,
                asset=part.asset,
                producer_version=part.version,
                position=position,
                selection=part.selection,
                strategy=part.strategy,
                params=part.params,
                mapping=part.mapping,
                partition=part.version.partition_of(part.asset.name) or {},
                total=len(part.whole),
            )
            for position, part in enumerate(found.parts)
        )
        audit.record(
            user,
            "create",
            "backfill",
            backfill.name,
            {
                "selection": found.asked.selection,
                "partitions": sum(len(part.whole) for part in found.parts),
                **_following(found),
            },
        )
        nudge_advance()
    return backfill


def _following(found: Checked) -> dict[str, list[str]]:
    names = [part.asset.name for part in found.parts[1:]]
    return {"downstream": names} if names else {}


def _insert(request: BackfillRequest, found: Checked, user: User) -> Backfill:
    base = settings.BACKFILL_NAME_PATTERN.format(asset=request.asset.name, timestamp=found.at)[:240]
    group = RunGroup.objects.create(
        kind=GroupKind.BACKFILL,
        label=base,
        queue=Queue.BACKFILL,
        max_active_runs=request.max_active_runs,
        created_by=user,
    )
    # Two requests within one second, or by a pattern without the time, get different names.
    for name in (base, f"{base}_{group.pk}"):
        try:
            with transaction.atomic():
                return Backfill.objects.create(
                    name=name,
                    asset=request.asset,
                    description=request.description,
                    start_date=found.start_date,
                    end_date=found.end_date,
                    logical_dates=found.asked.selection,
                    params=found.asked.params,
                    max_active_runs=request.max_active_runs,
                    strategy=found.asked.strategy,
                    order=request.order,
                    allow_holes=request.allow_holes,
                    existing=request.existing,
                    scheduled_date=request.start_at,
                    code_version=found.code_version,
                    relative_fileloc=found.asked.version.file,
                    origin_code=found.asked.version.source,
                    submitted_at=found.at,
                    submitted_by=user,
                    group=group,
                )
        except IntegrityError:
            if not Backfill.objects.filter(name=name).exists():
                raise
    raise RuntimeError(f"{base}_{group.pk} is the name of another backfill already.")
