"""The request that made a backfill, to be made again."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts_app import audit
from accounts_app.models import User
from backfills_app.models import Backfill
from backfills_app.services.creation import create_backfill
from backfills_app.services.freezing import given_to
from backfills_app.services.requests import NONE, BackfillRequest, request_from_text


def clone_request(backfill: Backfill) -> BackfillRequest:
    """What was asked for, by the newest code and at once: to be looked at, changed, and created."""
    pieces = list(backfill.assets.select_related("asset", "producer_version"))
    # A strategy holds for all assets where the request named one, else each has its own.
    named = any(piece.strategy != piece.producer_version.strategy for piece in pieces)
    followers = tuple(piece.asset.name for piece in pieces if piece.asset_id != backfill.asset_id)
    return BackfillRequest(
        asset=backfill.asset,
        selection=backfill.logical_dates,
        description=backfill.description,
        # What was left to each asset stays so: another may declare the same name differently.
        params={name: value for piece in pieces for name, value in given_to(piece).items()},
        max_active_runs=backfill.max_active_runs,
        order=backfill.order,
        strategy=backfill.strategy if named else None,
        allow_holes=backfill.allow_holes,
        existing=backfill.existing,
        downstream=followers or NONE,
    )


def clone_backfill(backfill: Backfill, changes: Mapping[str, Any], *, user: User) -> Backfill:
    """Ask for the same again, but for the fields that are given, as request_from_text takes them.

    Raises what creation raises.
    """
    fields = request_fields(clone_request(backfill))
    if {"start", "end", "selection"} & set(changes):
        del fields["selection"]
    with transaction.atomic():
        clone = create_backfill(request_from_text(**{**fields, **changes}), user=user)
        audit.record(user, "clone", "backfill", backfill.name, {"as": clone.name})
    return clone


def request_fields(request: BackfillRequest) -> dict[str, Any]:
    """The request by the names that JSON bodies and forms have for it, without what is empty."""
    fields: dict[str, Any] = {
        "asset": request.asset.name,
        "start": request.start,
        "end": request.end,
        "selection": request.selection,
        "description": request.description,
        "params": dict(request.params),
        "max_active_runs": request.max_active_runs,
        "order": request.order,
        "strategy": request.strategy,
        "allow_holes": request.allow_holes,
        "existing": request.existing,
        "downstream": list(request.downstream)
        if isinstance(request.downstream, tuple)
        else request.downstream,
        "code_version": request.code_version,
        "start_at": request.start_at.isoformat() if request.start_at else "",
    }
    return {name: value for name, value in fields.items() if value not in ("", None, {})}
