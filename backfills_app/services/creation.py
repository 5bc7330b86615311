"""Accepts a backfill: one insert, whatever its size.

The bulk worker expands it.
"""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts_app import audit
from accounts_app.models import User
from assets_app.models import GroupKind, Queue, RunGroup
from backfills_app.models import AssetRole, Backfill, BackfillAsset
from backfills_app.queries.chosen import chosen_text
from backfills_app.services.checking import Checked, checked
from backfills_app.services.freezing import freeze_cuts
from backfills_app.services.messages import nudge_advance
from backfills_app.services.requests import NONE, BackfillRequest, Downstream


def create_backfill(request: BackfillRequest, *, user: User) -> Backfill:
    """Accept the request, or refuse it whole: see check_backfill for what it raises.

    The assets' code and the partition definitions of all upstream assets are frozen: every run of
    the backfill uses those that are in force now.
    """
    found = checked(request, user=user)
    with transaction.atomic():
        backfill = _insert(request, found, user)
        pieces = BackfillAsset.objects.bulk_create(
            BackfillAsset(
                backfill=backfill,
                asset=part.asset,
                producer_version=part.version,
                position=position,
                role=part.role,
                selection=part.selection,
                strategy=part.strategy,
                params=part.params,
                mapping=part.mapping,
                partition=part.version.partition_of(part.asset.name) or {},
                total=len(part.whole),
            )
            for position, part in enumerate(found.parts)
        )
        freeze_cuts(backfill.group, pieces)
        audit.record(
            user,
            "create",
            "backfill",
            backfill.name,
            {
                "selection": found.asked.selection,
                "partitions": sum(len(part.whole) for part in found.parts),
                **chosen_by(request),
                **_others(found),
            },
        )
        nudge_advance()
    return backfill


def _others(found: Checked) -> dict[str, list[str]]:
    names = {
        role.value: [part.asset.name for part in found.parts if part.role == role]
        for role in (AssetRole.UPSTREAM, AssetRole.DOWNSTREAM)
    }
    return {role: some for role, some in names.items() if some}


def chosen_by(request: BackfillRequest) -> dict[str, Any]:
    """Return how assets and partitions were chosen, by the names of the request's fields; nothing
    for partitions of one asset.
    """
    if len(request.assets) == 1 and request.is_named and not request.upstream:
        return {}
    fields = {
        "assets": [asset.name for asset in request.assets] if request.is_named else [],
        "asset_group": request.asset_group,
        "asset_tag": request.asset_tag,
        "start": request.start,
        "end": request.end,
        "selection": request.selection,
        "upstream": request.upstream,
        "downstream": "" if request.downstream == NONE else _names(request.downstream),
    }
    return {name: value for name, value in fields.items() if value}


def _names(downstream: Downstream) -> str | list[str]:
    return downstream if isinstance(downstream, str) else list(downstream)


def _insert(request: BackfillRequest, found: Checked, user: User) -> Backfill:
    asset = found.asked.asset
    chosen = chosen_by(request)
    base = settings.BACKFILL_NAME_PATTERN.format(
        asset=chosen_text(chosen, asset.name), timestamp=found.at
    )[:240]
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
                    asset=asset,
                    description=request.description,
                    start_date=found.start_date,
                    end_date=found.end_date,
                    logical_dates=found.asked.selection,
                    chosen_by=chosen,
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
