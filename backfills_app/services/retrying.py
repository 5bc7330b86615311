"""What has failed once more: all of a backfill, or a single run of it.

In the same backfill, which is unfinished again. The runs that failed stay as its history.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Q
from django.dispatch import receiver

from accounts_app import audit
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.requests import checked_params, require_producer
from assets_app.execution.retrying import Code, checked_code
from assets_app.signals import retry_asked, runs_retried
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition, BackfillState
from backfills_app.services.control import held, standing
from backfills_app.services.counting import derive_states, reopen, shift_counts
from backfills_app.services.freezing import given_to, require_order, require_same_cut
from backfills_app.services.locks import try_lock
from backfills_app.services.messages import nudge_advance
from backfills_app.services.waiting import look_again
from backfills_app.services.withdrawing import take_back_waiting

State = BackfillPartition.State

# Skipped for want of something upstream, or of the partition before, which may be there by now, or
# is made by this retry.
_AGAIN = """
WITH back AS MATERIALIZED (
    SELECT id, backfill_asset_id, state FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%s)
      AND (state IN ('failed', 'canceled')
           OR reason IN ('upstream_failed', 'upstream_missing', 'wait_timeout'))
    ORDER BY id FOR UPDATE
), again AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET state = 'waiting', reason = '', run_id = NULL
    FROM back WHERE wanted.id = back.id
)
SELECT backfill_asset_id, state, count(*) FROM back GROUP BY 1, 2 ORDER BY 1, 2
"""

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


def retry_failed(backfill: Backfill, *, code: str = Code.SAME, user: User) -> Backfill:
    """Let all that has failed, was canceled, or was skipped for want of something upstream wait
    for its turn again.

    ``code`` "newest" takes the version in force now for every asset of which something is made
    again. Raises ConflictingRequest if there is nothing to retry or it is being canceled, and
    InvalidRequest on ``code`` or where the newest code does not take the params.
    """
    wanted = checked_code(code)
    with held(backfill, Action.BACKFILL, user) as present:
        _require_retryable(present)
        pieces = list(present.assets.select_related("producer_version"))
        take_back_waiting(present)
        again = _wait_again(pieces)
        if not again:
            raise ConflictingRequest({"": f"{standing(present)} Nothing of it is to be retried."})
        detail: dict[str, Any] = {"partitions": sum(again.values()), "code": wanted.value}
        if wanted is Code.NEWEST:
            renewed = [piece for piece in pieces if piece.pk in again]
            detail["versions"] = _renew(renewed, present.order)
        reopen([present.pk])
        _look_again(present)
        derive_states([present.pk])
        audit.record(user, "retry failed", "backfill", present.name, detail)
        nudge_advance()
    backfill.refresh_from_db()
    return backfill


def _require_retryable(backfill: Backfill) -> None:
    if backfill.state == BackfillState.CANCELING:
        raise ConflictingRequest(
            {"": f"{standing(backfill)} What was canceled can be retried once all has ended."}
        )
    if backfill.error:
        raise ConflictingRequest(
            {"": f"{backfill.name} was given up, and would be again: clone it. {backfill.error}"}
        )


def _wait_again(pieces: Sequence[BackfillAsset]) -> dict[int, int]:
    """How many partitions of each of the assets wait again, for those where there are any."""
    with connection.cursor() as cursor:
        cursor.execute(_AGAIN, [[piece.pk for piece in pieces]])
        found = cursor.fetchall()
    changes: dict[int, dict[str, int]] = {}
    for piece_id, state, number in found:
        change = changes.setdefault(piece_id, {"waiting": 0})
        change["waiting"] += number
        change[state] = -number
    for piece_id, change in changes.items():
        shift_counts(piece_id, change)
    return {piece_id: change["waiting"] for piece_id, change in changes.items()}


def _look_again(backfill: Backfill) -> None:
    try:
        look_again(backfill)
    except ValueError as error:
        # What its frozen code asks for is not to be had of what upstream is by now.
        raise ConflictingRequest(
            {"": f"{backfill.name} cannot go on as it was asked for: clone it. {error}"}
        ) from error


def _renew(pieces: Sequence[BackfillAsset], order: str) -> dict[str, str]:
    """Freeze the code in force now for these assets; the new digests, by name of the asset."""
    renewed: dict[str, str] = {}
    for piece in pieces:
        newest = require_producer(piece.asset)
        if newest.pk != piece.producer_version_id:
            require_same_cut(piece.asset, newest)
            require_order(order, [(piece.asset, newest)], field="code")
            piece.params = checked_params(newest, given_to(piece))
            piece.producer_version = newest
            piece.save(update_fields=["params", "producer_version"])
            renewed[piece.asset.name] = newest.digest[:12]
    return renewed


@receiver(retry_asked)
def object_to_retry(run_ids: Sequence[int], **_: Any) -> dict[int, str]:
    """Why runs of backfills cannot be retried one by one."""
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
        return (
            f"Run {run_id} is history: {name} has put its partitions, or some of them, back into"
            " its own queue since."
        )
    return ""


@receiver(runs_retried)
def follow_retried(run_ids: Sequence[int], **_: Any) -> None:
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
        # What follows waits for it again. Not waited for: whoever holds the lock may wait for the
        # runs that are held here.
        if try_lock(backfill.pk):
            _look_again(backfill)
    derive_states(backfill_ids)
    # Somebody may have been faster, after it was asked.
    gone = Q(state=BackfillState.CANCELING) | Q(deleted=True)
    for backfill in Backfill.objects.filter(gone, pk__in=backfill_ids)[:1]:
        what = "was deleted" if backfill.deleted else "is being canceled"
        raise ConflictingRequest({"": f"{backfill.name} {what}."})
