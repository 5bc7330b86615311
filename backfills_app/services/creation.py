"""Accepts a backfill: one insert, whatever its size.

What it comes to is worked out by the control worker.
"""

from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts_app import audit
from accounts_app.models import User
from assets_app.models import GroupKind, Queue, RunGroup
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services.messages import nudge_advance
from backfills_app.services.planning import BackfillPlan, check_backfill
from backfills_app.services.requests import BackfillRequest

_NAME_TRIES = 20


def create_backfill(request: BackfillRequest, *, user: User) -> Backfill:
    """Accept the request, or refuse it whole: see check_backfill for what it raises.

    The asset's code is frozen: every run of the backfill uses the version that is in force now.
    """
    plan = check_backfill(request, user=user)
    now = timezone.now()
    with transaction.atomic():
        backfill = _insert(request, plan, user, now)
        BackfillAsset.objects.bulk_create(
            BackfillAsset(
                backfill=backfill,
                asset=each.asset,
                producer_version=each.version,
                position=position,
                selection=each.selection,
                strategy=each.strategy,
                params=each.params,
                mapping=each.mapping,
                total=each.total,
            )
            for position, each in enumerate(plan.assets)
        )
        audit.record(
            user,
            "create",
            "backfill",
            backfill.name,
            {"selection": plan.selection, "partitions": plan.total},
        )
        nudge_advance()
    return backfill


def _insert(request: BackfillRequest, plan: BackfillPlan, user: User, now: datetime) -> Backfill:
    base = settings.BACKFILL_NAME_PATTERN.format(asset=request.asset.name, timestamp=now)[:240]
    group = RunGroup.objects.create(
        kind=GroupKind.BACKFILL,
        label=base,
        queue=Queue.BACKFILL,
        max_active_runs=request.max_active_runs,
        created_by=user,
    )
    for attempt in range(_NAME_TRIES):
        # Two requests within one second get different names.
        name = base if attempt == 0 else f"{base}_{attempt + 1}"
        try:
            with transaction.atomic():
                return Backfill.objects.create(
                    name=name,
                    asset=request.asset,
                    description=request.description,
                    start_date=plan.start_date,
                    end_date=plan.end_date,
                    logical_dates=plan.selection,
                    params=plan.params,
                    max_active_runs=request.max_active_runs,
                    strategy=plan.strategy,
                    order=request.order,
                    allow_holes=request.allow_holes,
                    existing=request.existing,
                    scheduled_date=request.start_at,
                    code_version=plan.code_version,
                    relative_fileloc=plan.producer_version.file,
                    origin_code=plan.producer_version.source,
                    submitted_at=now,
                    submitted_by=user,
                    group=group,
                )
        except IntegrityError:
            if not Backfill.objects.filter(name=name).exists():
                raise
    raise RuntimeError(f"No free name like {base} was found in {_NAME_TRIES} tries.")
