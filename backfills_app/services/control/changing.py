"""Changes of a backfill's settings, also while the backfill is running."""

from dataclasses import asdict, dataclass
from typing import Any

from accounts_app import audit
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import RunGroup
from assets_app.queries.clock import database_now
from backfills_app.models import Backfill, BackfillOrder, PendingControl
from backfills_app.services.advance.carrying import carry_out_now, record_request
from backfills_app.services.bookkeeping.counting import derive_states
from backfills_app.services.bookkeeping.messages import nudge_advance
from backfills_app.services.control.pausing_and_ending import locked_for_request, require_unfinished
from backfills_app.services.request.checking import (
    LONGEST_DESCRIPTION,
    MOST_ACTIVE_RUNS,
    require_order,
)
from slicewise.declaring import PRIORITY_LIMIT
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from slicewise_server.web.storable import is_storable

HIGHEST_PRIORITY = PRIORITY_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The settings to change; None leaves a setting unchanged."""

    max_active_runs: int | None = None
    priority: int | None = None
    order: str | None = None
    description: str | None = None


def change_backfill(
    backfill: Backfill,
    *,
    user: User,
    max_active_runs: int | None = None,
    priority: int | None = None,
    order: str | None = None,
    description: str | None = None,
) -> Backfill:
    """Change the settings that are given: the limit of active runs, the priority among backfills
    (higher goes first), the order of waiting partitions, the description.

    Runs that have begun go on. Raises InvalidRequest per field, and ConflictingRequest if the
    backfill has ended and more than the description is to be changed.
    """
    changes = Changes(
        max_active_runs=max_active_runs, priority=priority, order=order, description=description
    )
    _check(changes)
    with locked_for_request(backfill, Action.BACKFILL, user) as locked_backfill:
        differences = _differences(locked_backfill, changes)
        if set(differences) - {"description"}:
            require_unfinished(locked_backfill, "change but the description")
        _check_order(locked_backfill, differences)
        if differences:
            _apply(locked_backfill, differences)
            detail = {name: {"from": old, "to": new} for name, (old, new) in differences.items()}
            audit.record(user, "change", "backfill", locked_backfill.name, detail)
    carry_out_now(backfill.pk)
    backfill.refresh_from_db()
    return backfill


def _check(changes: Changes) -> None:
    given_values = {name: value for name, value in asdict(changes).items() if value is not None}
    errors: dict[str, str] = {}
    if not given_values:
        errors[""] = (
            f"The request changes nothing: name one or more of {', '.join(asdict(changes))}."
        )
    limit, requested_priority = changes.max_active_runs, changes.priority
    if limit is not None and not 1 <= limit <= MOST_ACTIVE_RUNS:
        errors["max_active_runs"] = f"Between 1 and {MOST_ACTIVE_RUNS}, not {limit}."
    if (
        requested_priority is not None
        and not -HIGHEST_PRIORITY <= requested_priority <= HIGHEST_PRIORITY
    ):
        errors["priority"] = (
            f"Between -{HIGHEST_PRIORITY} and {HIGHEST_PRIORITY}, not {requested_priority}."
        )
    if changes.order is not None and changes.order not in BackfillOrder.values:
        errors["order"] = f"{changes.order!r} is none of {', '.join(BackfillOrder.values)}."
    if changes.description is not None and len(changes.description) > LONGEST_DESCRIPTION:
        errors["description"] = (
            f"At most {LONGEST_DESCRIPTION} characters, not {len(changes.description)}."
        )
    elif changes.description is not None and not is_storable(changes.description):
        errors["description"] = "Text may not hold NUL or surrogate characters."
    if errors:
        raise InvalidRequest(errors)


def _differences(backfill: Backfill, changes: Changes) -> dict[str, tuple[Any, Any]]:
    present_values = {
        "max_active_runs": backfill.max_active_runs,
        "priority": backfill.group.priority,
        "order": backfill.order,
        "description": backfill.description,
    }
    requested_values = asdict(changes)
    return {
        name: (present_values[name], requested_values[name])
        for name in present_values
        if requested_values[name] is not None and requested_values[name] != present_values[name]
    }


def _check_order(backfill: Backfill, differences: dict[str, tuple[Any, Any]]) -> None:
    """Refuse an order that the backfill cannot take: the positions of a selection are stored at
    creation, and only if the request asked for that order.
    """
    if "order" not in differences:
        return
    new_order = differences["order"][1]
    asset_rows = backfill.assets.select_related("asset", "producer_version")
    require_order(
        new_order, [(asset_row.asset, asset_row.producer_version) for asset_row in asset_rows]
    )
    if new_order == BackfillOrder.LISTED:
        # A backfill that was created with this order lost the positions when its order was changed.
        raise ConflictingRequest(
            {"order": f"{backfill.name} has no listed order: choose oldest or newest."}
        )


def _apply(backfill: Backfill, differences: dict[str, tuple[Any, Any]]) -> None:
    new_values = {name: new_value for name, (_, new_value) in differences.items()}
    is_limit_lowered = (
        new_values.get("max_active_runs", backfill.max_active_runs) < backfill.max_active_runs
    )
    if is_limit_lowered or "order" in new_values:
        # The queued runs were chosen by the former settings.
        record_request(backfill, PendingControl.Verb.WITHDRAW)
    backfill_values = {
        name: new_values[name]
        for name in ("max_active_runs", "order", "description")
        if name in new_values
    }
    Backfill.objects.filter(pk=backfill.pk).update(updated_at=database_now(), **backfill_values)
    group_values = {
        name: new_values[name] for name in ("max_active_runs", "priority") if name in new_values
    }
    if group_values:
        RunGroup.objects.filter(pk=backfill.group_id).update(**group_values)
    derive_states([backfill.pk])
    nudge_advance()
    nudge_dispatch()
