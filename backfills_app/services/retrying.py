"""What has failed once more: all of a backfill, or a single run of it.

In the same backfill, which is unfinished again. The runs that failed stay as its history.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Q

from accounts_app import audit
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.retrying import Code, checked_code
from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
    PendingControl,
)
from backfills_app.services.carrying import COULD_NOT_BE_RETRIED, carry_out_now, leave
from backfills_app.services.control import asked_of, standing
from backfills_app.services.counting import derive_states, reopen, shift_counts
from backfills_app.services.reopening import RETRIED_REASONS, newest_version
from backfills_app.services.stored import stored_parts

State = BackfillPartition.State
Verb = PendingControl.Verb

_FOLLOW = """
WITH made AS MATERIALIZED (
    SELECT id, backfill_asset_id, state FROM backfills_app_backfillpartition
    WHERE run_id = ANY(%s) AND state <> 'active' AND reason <> 'in_flight' ORDER BY id FOR UPDATE
), again AS (
    UPDATE backfills_app_backfillpartition AS wanted SET state = 'active', reason = ''
    FROM made WHERE wanted.id = made.id
)
SELECT made.backfill_asset_id, piece.backfill_id, made.state, count(*)
FROM made JOIN backfills_app_backfillasset AS piece ON piece.id = made.backfill_asset_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

# Held still: a retry of the whole backfill would take them meanwhile.
_LOCK = """
SELECT count(*) FROM (
    SELECT id FROM backfills_app_backfillpartition WHERE run_id = ANY(%s) ORDER BY id FOR UPDATE
) AS held
"""
_STANDING = """
SELECT run.id, asked.name, asked.state, asked.deleted, EXISTS (
    SELECT FROM assets_app_runpartition AS made
    JOIN assets_app_assetpartition AS slice ON slice.id = made.slice_id
    WHERE made.run_id = run.id AND slice.asset_id = run.asset_id AND NOT EXISTS (
        SELECT FROM backfills_app_backfillpartition AS wanted
        WHERE wanted.run_id = run.id AND wanted.slice_id = made.slice_id
    )
)
FROM assets_app_run AS run JOIN backfills_app_backfill AS asked ON asked.group_id = run.group_id
WHERE run.id = ANY(%s)
"""


def retry_failed(
    backfill: Backfill, *, code: str = Code.SAME, canceled: bool = False, user: User
) -> Backfill:
    """Put partitions that failed, or were skipped for want of something upstream, back to waiting;
    with ``canceled`` canceled partitions as well.

    ``code`` "newest" takes the version in force now for every asset of which something is made
    again. Raises ConflictingRequest if there is nothing to retry or it is being canceled, and
    InvalidRequest on ``code`` or where the newest code does not take the params.
    """
    wanted = checked_code(code)
    with asked_of(backfill, Action.BACKFILL, user) as present:
        _require_retryable(present)
        numbers = retryable_counts(present)
        if not numbers.failed and not (canceled and numbers.canceled):
            raise ConflictingRequest({"": _nothing_to_retry(present, numbers)})
        detail: dict[str, Any] = {
            "partitions": numbers.failed + (numbers.canceled if canceled else 0),
            "code": wanted.value,
        }
        if wanted is Code.NEWEST:
            detail["versions"] = _newest(present, is_canceled_too=canceled)
        _require_readable(present)
        leave(present, Verb.RETRY, is_newest_code=wanted is Code.NEWEST, is_canceled_too=canceled)
        Backfill.objects.filter(pk=present.pk).update(error="")  # of a retry before this one
        reopen([present.pk])
        derive_states([present.pk])
        audit.record(user, "retry failed", "backfill", present.name, detail)
    carry_out_now(backfill.pk)
    backfill.refresh_from_db()
    return backfill


class Retryable(NamedTuple):
    """How many partitions of a backfill a retry takes, and how many were canceled."""

    failed: int
    canceled: int


def retryable_counts(backfill: Backfill) -> Retryable:
    """Count what a retry makes again: by the counts of its assets, and the reasons of what was
    skipped.
    """
    numbers = _retryable_by_asset(backfill.assets.all()).values()
    return Retryable(sum(each.failed for each in numbers), sum(each.canceled for each in numbers))


def _retryable_by_asset(pieces: Iterable[BackfillAsset]) -> dict[BackfillAsset, Retryable]:
    listed = list(pieces)
    skipped = BackfillPartition.objects.filter(
        backfill_asset__in=[piece.pk for piece in listed if piece.skipped],
        state=State.SKIPPED,
        reason__in=RETRIED_REASONS,
    )
    counted = skipped.order_by().values_list("backfill_asset").annotate(number=Count("pk"))
    numbers = dict(counted)
    return {
        piece: Retryable(piece.failed + numbers.get(piece.pk, 0), piece.canceled)
        for piece in listed
    }


def _nothing_to_retry(backfill: Backfill, numbers: Retryable) -> str:
    message = f"{standing(backfill)} Nothing of it is to be retried."
    if numbers.canceled:
        return f"{message} To make its {numbers.canceled:,} canceled partitions, ask for these too."
    return message


def _newest(backfill: Backfill, *, is_canceled_too: bool) -> dict[str, str]:
    """Return digests of the newest code, by name of the asset, of all of which something is made
    again; refuse code that does not fit.
    """
    pieces = backfill.assets.select_related("asset", "producer_version")
    again = [
        piece
        for piece, numbers in _retryable_by_asset(pieces).items()
        if numbers.failed or (is_canceled_too and numbers.canceled)
    ]
    return {
        piece.asset.name: newest.digest[:12]
        for piece in again
        if (newest := newest_version(piece, backfill.order)).pk != piece.producer_version_id
    }


def _require_readable(backfill: Backfill) -> None:
    try:
        stored_parts(backfill)
    except ValueError as error:
        # What its frozen code asks for is not to be had of what upstream is by now.
        raise ConflictingRequest(
            {"": f"{backfill.name} cannot go on as it was asked for: clone it. {error}"}
        ) from error


def _require_retryable(backfill: Backfill) -> None:
    if backfill.state == BackfillState.CANCELING:
        raise ConflictingRequest(
            {"": f"{standing(backfill)} What was canceled can be retried once all has ended."}
        )
    if backfill.error and not backfill.error.startswith(COULD_NOT_BE_RETRIED):
        raise ConflictingRequest(
            {"": f"{backfill.name} was given up, and would be again: clone it. {backfill.error}"}
        )


def object_to_retry(run_ids: Sequence[int]) -> dict[int, str]:
    """Return, by run, why runs of backfills cannot be retried one by one."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [list(run_ids)])
        cursor.execute(_STANDING, [list(run_ids)])
        found = cursor.fetchall()
    said = {run_id: _objection(run_id, *standing) for run_id, *standing in found}
    return {run_id: sentence for run_id, sentence in said.items() if sentence}


def _objection(run_id: int, name: str, state: str, is_deleted: bool, is_replaced: bool) -> str:
    if is_deleted:
        return f"Run {run_id} belongs to {name}, which was deleted: run it again instead."
    if state == BackfillState.CANCELING:
        return f"Run {run_id} belongs to {name}, which is being canceled."
    if is_replaced:
        instead = (
            "Retry that backfill instead, or run this run again."
            if state in ENDED_STATES
            else "That backfill makes them in another run."
        )
        return (
            f"Run {run_id} is history: {name} has put its partitions, or some of them, back into"
            f" its own queue since. {instead}"
        )
    return ""


def follow_retried(run_ids: Sequence[int]) -> None:
    """Bring the backfills of these runs up to date: what they had settled is open again."""
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, [list(run_ids)])
        opened = cursor.fetchall()
    if not opened:
        return
    changes: dict[int, dict[str, int]] = {}
    for piece_id, _backfill_id, state, number in opened:
        change = changes.setdefault(piece_id, {"active": 0})
        change["active"] += number
        change[state] = -number
    for piece_id, change in sorted(changes.items()):
        shift_counts(piece_id, change)
    backfill_ids = {backfill_id for _, backfill_id, _, _ in opened}
    reopen(backfill_ids)
    for backfill in Backfill.objects.filter(pk__in=backfill_ids).order_by("pk"):
        # What follows waits for it again: seen to before anything more is admitted. Whoever holds
        # the lock may wait for the runs that are held here, so that it is not asked for.
        if backfill.assets.count() > 1:
            leave(backfill, Verb.LOOK_AGAIN)
    derive_states(backfill_ids)
    # Somebody may have been faster, after it was asked.
    gone = Q(state=BackfillState.CANCELING) | Q(deleted=True)
    for backfill in Backfill.objects.filter(gone, pk__in=backfill_ids)[:1]:
        what = "was deleted" if backfill.deleted else "is being canceled"
        raise ConflictingRequest({"": f"{backfill.name} {what}."})
