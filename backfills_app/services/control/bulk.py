"""One action on several backfills, with a sentence for each backfill that refuses the action."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.core.exceptions import PermissionDenied

from accounts_app.models import User
from backfills_app.models import Backfill
from backfills_app.services.control.pausing_and_ending import (
    cancel_backfill,
    delete_backfill,
    pause_backfill,
    resume_backfill,
)
from backfills_app.services.control.retrying_failed import retry_failed
from slicewise_server.web.request_errors import InvalidRequest

ACTIONS: dict[str, Callable[..., Backfill]] = {
    "pause": pause_backfill,
    "resume": resume_backfill,
    "cancel": cancel_backfill,
    "retry": retry_failed,
    "delete": delete_backfill,
}
MOST_AT_ONCE = 200


@dataclass(slots=True)
class BulkResult:
    """The numbers of the backfills that took the action, and the refusals of other backfills by
    number.
    """

    done: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


def in_bulk(action: str, ids: Collection[int], *, user: User) -> BulkResult:
    """Apply an action to each of the backfills, each in a transaction of its own, in the order of
    numbers: under an idempotency key all are one transaction, and two requests must not lock the
    same rows in opposite orders.

    Raises InvalidRequest on ``action`` or ``backfills``, and PermissionDenied if a missing
    permission is the reason of all refusals.
    """
    act = ACTIONS.get(action)
    if act is None:
        raise InvalidRequest({"action": f"{action!r} is none of {', '.join(ACTIONS)}."})
    backfill_ids = sorted(set(ids))
    if not 1 <= len(backfill_ids) <= MOST_AT_ONCE:
        raise InvalidRequest(
            {"backfills": f"Between 1 and {MOST_AT_ONCE}, not {len(backfill_ids)}."}
        )
    rows = Backfill.objects.filter(deleted=False).in_bulk(backfill_ids)
    result, denied = BulkResult(), 0
    for pk in backfill_ids:
        if pk not in rows:
            result.refused[pk] = f"There is no backfill {pk}."
            continue
        try:
            act(rows[pk], user=user)
            result.done.append(pk)
        except PermissionDenied as refusal:
            denied += 1
            result.refused[pk] = str(refusal)
        except InvalidRequest as refusal:
            result.refused[pk] = str(refusal)
    if denied == len(backfill_ids):
        raise PermissionDenied(result.refused[backfill_ids[0]])
    return result
