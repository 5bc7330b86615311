"""The request that made a backfill, to be made again."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts_app import audit
from accounts_app.models import User
from backfills_app.models import AssetRole, Backfill
from backfills_app.services.creation import create_backfill
from backfills_app.services.freezing import given_to
from backfills_app.services.requests import NONE, request_from_text

_BY_PERIOD = ("start", "end", "selection")


def clone_fields(backfill: Backfill) -> dict[str, Any]:
    """Return the fields of the request, by the names that JSON bodies and forms have for them, to
    be asked for by the newest code and at once: without those that are empty.

    A group or a tag stands for the assets that are in it by now.
    """
    pieces = list(backfill.assets.select_related("asset", "producer_version"))
    # A strategy holds for all assets where the request named one, else each has its own.
    named = any(piece.strategy != piece.producer_version.strategy for piece in pieces)
    followers = [piece.asset.name for piece in pieces if piece.role == AssetRole.DOWNSTREAM]
    plain = {"asset": backfill.asset.name, "selection": backfill.logical_dates}
    fields: dict[str, Any] = {
        "description": backfill.description,
        # What was left to each asset stays so: another may declare the same name differently.
        "params": {name: value for piece in pieces for name, value in given_to(piece).items()},
        "max_active_runs": backfill.max_active_runs,
        "order": backfill.order,
        "strategy": backfill.strategy if named else None,
        "allow_holes": backfill.allow_holes,
        "existing": backfill.existing,
        "downstream": followers or NONE,
        # What follows may be upstream of a chosen asset as well, and is no mere follower then.
        **(backfill.chosen_by or plain),
    }
    return {name: value for name, value in fields.items() if value not in ("", None, {})}


def clone_backfill(backfill: Backfill, changes: Mapping[str, Any], *, user: User) -> Backfill:
    """Ask for the same again, but for the fields that are given, as request_from_text takes them.

    Raises what creation raises.
    """
    fields = clone_fields(backfill)
    if set(_BY_PERIOD) & set(changes):
        fields = {name: value for name, value in fields.items() if name not in _BY_PERIOD}
    with transaction.atomic():
        clone = create_backfill(request_from_text(**{**fields, **changes}), user=user)
        audit.record(user, "clone", "backfill", backfill.name, {"as": clone.name})
    return clone
