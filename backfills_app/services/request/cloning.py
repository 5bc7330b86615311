"""Clones of backfills: the request of a backfill, sent once more."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts_app import audit
from accounts_app.models import User
from backfills_app.models import AssetRole, Backfill
from backfills_app.services.request.backfill_request import NONE, request_from_text
from backfills_app.services.request.frozen_request import requested_params
from backfills_app.services.request.nothing_to_run import request_backfill

_BY_PERIOD = ("start", "end", "selection")


def clone_fields(backfill: Backfill) -> dict[str, Any]:
    """Return the request fields that create the same backfill again, under the names that JSON
    bodies and forms use, without empty fields.

    Code version and start time are left out: a clone uses the newest code and starts at once. A
    group or a tag stands for the assets that are in the group or have the tag by now.
    """
    asset_rows = list(backfill.assets.select_related("asset", "producer_version"))
    # A strategy in the request holds for all assets; otherwise each asset has its declared
    # strategy.
    is_strategy_requested = any(
        asset_row.strategy != asset_row.producer_version.spec.strategy for asset_row in asset_rows
    )
    followers = [
        asset_row.asset.name for asset_row in asset_rows if asset_row.role == AssetRole.DOWNSTREAM
    ]
    single_asset_fields = {"asset": backfill.asset.name, "selection": backfill.logical_dates}
    fields: dict[str, Any] = {
        "description": backfill.description,
        # Only params that the request set: another asset may declare the same name with another
        # value.
        "params": {
            name: value
            for asset_row in asset_rows
            for name, value in requested_params(asset_row).items()
        },
        "max_active_runs": backfill.max_active_runs,
        "order": backfill.order,
        "strategy": backfill.strategy if is_strategy_requested else None,
        "allow_holes": backfill.allow_holes,
        "existing": backfill.existing,
        "downstream": followers or NONE,
        # This overrides "downstream" above: an asset that follows may also be upstream of a chosen
        # asset, and has the role of an upstream asset then.
        **(backfill.chosen_by or single_asset_fields),
    }
    return {name: value for name, value in fields.items() if value not in ("", None, {})}


def clone_backfill(backfill: Backfill, changes: Mapping[str, Any], *, user: User) -> Backfill:
    """Create a backfill from the same request, with some fields replaced; ``changes`` are fields as
    request_from_text takes fields.

    Raises the errors of request_backfill.
    """
    fields = clone_fields(backfill)
    if set(_BY_PERIOD) & set(changes):
        fields = {name: value for name, value in fields.items() if name not in _BY_PERIOD}
    with transaction.atomic():
        clone = request_backfill(request_from_text(**{**fields, **changes}), user=user)
        audit.record(user, "clone", "backfill", backfill.name, {"as": clone.name})
    return clone
