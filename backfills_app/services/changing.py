"""Changes the terms of a backfill while it is on its way."""

from dataclasses import asdict, dataclass
from typing import Any

from django.utils import timezone

from accounts_app import audit
from accounts_app.errors import ConflictingRequest, InvalidRequest
from accounts_app.models import User
from accounts_app.policy import Action
from accounts_app.storable import is_storable
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import RunGroup
from backfills_app.models import Backfill, BackfillOrder, PendingControl
from backfills_app.services.carrying import carry_out_now, leave
from backfills_app.services.checking import LONGEST_DESCRIPTION, MOST_ACTIVE_RUNS
from backfills_app.services.control import asked_of, require_unfinished
from backfills_app.services.counting import derive_states
from backfills_app.services.freezing import require_order
from backfills_app.services.messages import nudge_advance
from slicewise.option_checks import PRIORITY_LIMIT

HIGHEST_PRIORITY = PRIORITY_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be different; None leaves it as it is."""

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
    """Change what is given, from now on: how many of its runs may run at once, its priority among
    backfills (higher goes first), the order of what waits, its description.

    What runs goes on. Raises InvalidRequest per field, and ConflictingRequest where anything but
    the description is changed of one that has ended.
    """
    asked = Changes(
        max_active_runs=max_active_runs, priority=priority, order=order, description=description
    )
    _check(asked)
    with asked_of(backfill, Action.BACKFILL, user) as present:
        changed = _differences(present, asked)
        if set(changed) - {"description"}:
            require_unfinished(present, "change but its description")
        _check_order(present, changed)
        if changed:
            _apply(present, changed)
            detail = {name: {"from": was, "to": now} for name, (was, now) in changed.items()}
            audit.record(user, "change", "backfill", present.name, detail)
    carry_out_now(backfill.pk)
    backfill.refresh_from_db()
    return backfill


def _check(asked: Changes) -> None:
    given = {name: value for name, value in asdict(asked).items() if value is not None}
    errors: dict[str, str] = {}
    if not given:
        errors[""] = f"Nothing is to be changed: name one or more of {', '.join(asdict(asked))}."
    most, first = asked.max_active_runs, asked.priority
    if most is not None and not 1 <= most <= MOST_ACTIVE_RUNS:
        errors["max_active_runs"] = f"Between 1 and {MOST_ACTIVE_RUNS}, not {most}."
    if first is not None and not -HIGHEST_PRIORITY <= first <= HIGHEST_PRIORITY:
        errors["priority"] = f"Between -{HIGHEST_PRIORITY} and {HIGHEST_PRIORITY}, not {first}."
    if asked.order is not None and asked.order not in BackfillOrder.values:
        errors["order"] = f"{asked.order!r} is none of {', '.join(BackfillOrder.values)}."
    if asked.description is not None and len(asked.description) > LONGEST_DESCRIPTION:
        errors["description"] = (
            f"At most {LONGEST_DESCRIPTION} characters, not {len(asked.description)}."
        )
    elif asked.description is not None and not is_storable(asked.description):
        errors["description"] = "Text may not hold NUL or surrogate characters."
    if errors:
        raise InvalidRequest(errors)


def _differences(present: Backfill, asked: Changes) -> dict[str, tuple[Any, Any]]:
    was = {
        "max_active_runs": present.max_active_runs,
        "priority": present.group.priority,
        "order": present.order,
        "description": present.description,
    }
    given = asdict(asked)
    return {
        name: (was[name], given[name])
        for name in was
        if given[name] is not None and given[name] != was[name]
    }


def _check_order(present: Backfill, changed: dict[str, tuple[Any, Any]]) -> None:
    """The places that a selection gives are written down at creation, and only where it asked."""
    if "order" not in changed:
        return
    wanted = changed["order"][1]
    pieces = present.assets.select_related("asset", "producer_version")
    require_order(wanted, [(piece.asset, piece.producer_version) for piece in pieces])
    if wanted == BackfillOrder.LISTED:
        # Where it was listed once, its places went when that was changed.
        raise ConflictingRequest(
            {"order": f"{present.name} keeps no order of its selection: oldest or newest."}
        )


def _apply(present: Backfill, changed: dict[str, tuple[Any, Any]]) -> None:
    new = {name: now for name, (_, now) in changed.items()}
    lowered = new.get("max_active_runs", present.max_active_runs) < present.max_active_runs
    if lowered or "order" in new:
        # What stands in the queue was chosen by the former terms.
        leave(present, PendingControl.Verb.WITHDRAW)
    own = {name: new[name] for name in ("max_active_runs", "order", "description") if name in new}
    Backfill.objects.filter(pk=present.pk).update(updated_at=timezone.now(), **own)
    of_group = {name: new[name] for name in ("max_active_runs", "priority") if name in new}
    if of_group:
        RunGroup.objects.filter(pk=present.group_id).update(**of_group)
    derive_states([present.pk])
    nudge_advance()
    nudge_dispatch()
