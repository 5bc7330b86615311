"""Creation of backfills: one insert, however many partitions the request has.

The bulk worker expands the backfill later.
"""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts_app import audit
from accounts_app.models import User
from assets_app.models import GroupKind, Queue, RunGroup
from backfills_app.models import AssetRole, Backfill, BackfillAsset
from backfills_app.queries.chosen import chosen_text
from backfills_app.services.bookkeeping.messages import nudge_advance
from backfills_app.services.partitions.frozen_assets import freeze_definitions
from backfills_app.services.request.backfill_request import NONE, BackfillRequest, Downstream
from backfills_app.services.request.checking import Checked


def insert_backfill(
    request: BackfillRequest, checked_request: Checked, user: User, submission: str | None = None
) -> Backfill:
    """Insert the backfill of a checked request.

    The code of the assets and the partition definitions of all upstream assets are frozen: every
    run of the backfill uses the versions in force now. ``submission`` is a digest of the form, if a
    form sent the request. Of two requests with one digest at once, the later one waits for the
    earlier one, and returns the same backfill.
    """
    try:
        with transaction.atomic():
            return _insert_all(request, checked_request, user, submission)
    except IntegrityError:
        earlier = Backfill.objects.of_submission(submission) if submission else None
        if earlier is None:
            raise
        return earlier


def _insert_all(
    request: BackfillRequest, checked_request: Checked, user: User, submission: str | None
) -> Backfill:
    backfill = _insert(request, checked_request, user, submission)
    asset_rows = BackfillAsset.objects.bulk_create(
        [
            BackfillAsset(
                backfill=backfill,
                asset=scope.asset,
                producer_version=scope.version,
                position=position,
                role=scope.role,
                selection=scope.selection,
                strategy=scope.strategy,
                params=scope.params,
                mapping=scope.mapping,
                partition=scope.version.spec.partition_of(scope.asset.name) or {},
                total=len(scope.whole),
            )
            for position, scope in enumerate(checked_request.scopes)
        ]
    )
    freeze_definitions(backfill.group, asset_rows)
    audit.record(
        user,
        "create",
        "backfill",
        backfill.name,
        {
            "selection": checked_request.first_chosen.selection,
            "partitions": sum(len(scope.whole) for scope in checked_request.scopes),
            **chosen_by(request),
            **_other_assets(checked_request),
        },
    )
    nudge_advance()
    return backfill


def _other_assets(checked_request: Checked) -> dict[str, list[str]]:
    names = {
        role.value: [scope.asset.name for scope in checked_request.scopes if scope.role == role]
        for role in (AssetRole.UPSTREAM, AssetRole.DOWNSTREAM)
    }
    return {role: asset_names for role, asset_names in names.items() if asset_names}


def chosen_by(request: BackfillRequest) -> dict[str, Any]:
    """Return how assets and partitions were chosen, by the names of the request's fields; return an
    empty dictionary for partitions of one asset.
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


def _insert(
    request: BackfillRequest, checked_request: Checked, user: User, submission: str | None
) -> Backfill:
    asset = checked_request.first_chosen.asset
    chosen = chosen_by(request)
    base = settings.BACKFILL_NAME_PATTERN.format(
        asset=chosen_text(chosen, asset.name), timestamp=checked_request.at
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
                    start_date=checked_request.start_date,
                    end_date=checked_request.end_date,
                    logical_dates=checked_request.first_chosen.selection,
                    chosen_by=chosen,
                    params=checked_request.first_chosen.params,
                    max_active_runs=request.max_active_runs,
                    strategy=checked_request.first_chosen.strategy,
                    order=request.order,
                    allow_holes=request.allow_holes,
                    existing=request.existing,
                    scheduled_date=request.start_at,
                    code_version=checked_request.code_version,
                    relative_fileloc=checked_request.first_chosen.version.file,
                    origin_code=checked_request.first_chosen.version.source,
                    submitted_at=checked_request.at,
                    submitted_by=user,
                    group=group,
                    submission=submission,
                )
        except IntegrityError:
            if not Backfill.objects.filter(name=name).exists():
                raise
    raise RuntimeError(f"{base}_{group.pk} is the name of another backfill already.")
