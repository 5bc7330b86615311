"""Retries of failed partitions: of a whole backfill, or of single runs of a backfill.

The partitions are retried in the same backfill, which becomes unfinished again. The failed runs
stay as the history of the backfill.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Q

from accounts_app import audit, policy
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.request.retrying import Code, checked_code
from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillState,
    PendingControl,
)
from backfills_app.queries.skips import retried_skips
from backfills_app.services.advance.carrying import (
    carry_out_now,
    is_given_up,
    record_request,
)
from backfills_app.services.advance.reopening import newest_version
from backfills_app.services.bookkeeping.counting import derive_states, reopen, shift_counts
from backfills_app.services.control.pausing_and_ending import locked_for_request, state_sentence
from backfills_app.services.partitions.frozen_assets import outlets_of
from backfills_app.services.partitions.stored import stored_scopes
from slicewise_server.web.request_errors import ConflictingRequest

Verb = PendingControl.Verb

_REOPEN = """
WITH ended AS MATERIALIZED (
    SELECT id, backfill_asset_id, run_id, state FROM backfills_app_backfillpartition
    WHERE run_id = ANY(%s) AND state <> 'active' AND reason <> 'in_flight' ORDER BY id FOR UPDATE
), reopened AS (
    UPDATE backfills_app_backfillpartition AS backfill_partition SET state = 'active', reason = ''
    FROM ended WHERE backfill_partition.id = ended.id
)
SELECT ended.backfill_asset_id, backfill_asset.backfill_id, ended.state, count(*),
    array_agg(DISTINCT ended.run_id)
FROM ended
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = ended.backfill_asset_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

# Locks the partitions: a retry of the whole backfill could take the partitions at the same time.
_LOCK_PARTITIONS = """
SELECT count(*) FROM (
    SELECT id FROM backfills_app_backfillpartition WHERE run_id = ANY(%s) ORDER BY id FOR UPDATE
) AS locked_partition
"""
_RUN_STATUS = """
SELECT run.id, backfill.name, backfill.state, backfill.deleted, EXISTS (
    SELECT FROM assets_app_runpartition AS run_partition
    JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
    WHERE run_partition.run_id = run.id AND partition.asset_id = run.asset_id AND NOT EXISTS (
        SELECT FROM backfills_app_backfillpartition AS backfill_partition
        WHERE backfill_partition.run_id = run.id
          AND backfill_partition.partition_id = run_partition.partition_id
    )
)
FROM assets_app_run AS run JOIN backfills_app_backfill AS backfill
    ON backfill.group_id = run.group_id
WHERE run.id = ANY(%s)
"""


def retry_failed(
    backfill: Backfill, *, code: str = Code.SAME, canceled: bool = False, user: User
) -> Backfill:
    """Set failed partitions, and the skipped partitions that a retry takes (`retried_skips`), back
    to waiting; with ``canceled`` canceled partitions as well.

    ``code`` "newest" takes the version in force now for every asset with retried partitions. Raises
    ConflictingRequest if there is nothing to retry, or if the backfill is being canceled or cannot
    go on, InvalidRequest on ``code`` or where the newest code does not take the params, and
    PermissionDenied unless the user may backfill all assets that the code writes.
    """
    retry_code = checked_code(code)
    with locked_for_request(backfill, Action.BACKFILL, user) as locked_backfill:
        _require_retryable(locked_backfill)
        counts = retryable_counts(locked_backfill)
        if not counts.failed and not (canceled and counts.canceled):
            raise ConflictingRequest({"": _nothing_to_retry(locked_backfill, counts)})
        detail: dict[str, Any] = {
            "partitions": counts.failed + (counts.canceled if canceled else 0),
            "code": retry_code.value,
        }
        if retry_code is Code.NEWEST:
            detail["versions"] = _newest_digests(locked_backfill, user, is_canceled_too=canceled)
        _require_readable(locked_backfill)
        record_request(
            locked_backfill,
            Verb.RETRY,
            is_newest_code=retry_code is Code.NEWEST,
            is_canceled_too=canceled,
        )
        # The error may be left from an earlier retry.
        Backfill.objects.filter(pk=locked_backfill.pk).update(error="")
        reopen([locked_backfill.pk])
        derive_states([locked_backfill.pk])
        audit.record(user, "retry failed", "backfill", locked_backfill.name, detail)
    carry_out_now(backfill.pk)
    backfill.refresh_from_db()
    return backfill


class Retryable(NamedTuple):
    """The number of partitions that a retry takes (``failed``), and the number of canceled
    partitions.
    """

    failed: int
    canceled: int


def retryable_counts(backfill: Backfill) -> Retryable:
    """Count the partitions that a retry takes, from the counts of the assets and the reasons of
    skipped partitions.
    """
    asset_counts = _retryable_by_asset(backfill.assets.all()).values()
    return Retryable(
        sum(counts.failed for counts in asset_counts),
        sum(counts.canceled for counts in asset_counts),
    )


def _retryable_by_asset(asset_rows: Iterable[BackfillAsset]) -> dict[BackfillAsset, Retryable]:
    asset_list = list(asset_rows)
    skipped_counts = (
        retried_skips(asset_list)
        .order_by()
        .values_list("backfill_asset")
        .annotate(number=Count("pk"))
    )
    skipped_by_asset = dict(skipped_counts)
    return {
        asset_row: Retryable(
            asset_row.failed + skipped_by_asset.get(asset_row.pk, 0), asset_row.canceled
        )
        for asset_row in asset_list
    }


def _nothing_to_retry(backfill: Backfill, counts: Retryable) -> str:
    message = f"{state_sentence(backfill)} The backfill has no partitions to retry."
    if counts.canceled:
        return (
            f"{message} To retry the {counts.canceled:,} canceled partitions, include canceled"
            " partitions."
        )
    return message


def _newest_digests(backfill: Backfill, user: User, *, is_canceled_too: bool) -> dict[str, str]:
    """Return the digests of the newest code, by the names of the assets with partitions to retry;
    refuse code that does not fit, or that writes assets which the user may not backfill.
    """
    asset_rows = backfill.assets.select_related("asset", "producer_version")
    newest_versions = {
        asset_row.asset: newest
        for asset_row, counts in _retryable_by_asset(asset_rows).items()
        if (counts.failed or (is_canceled_too and counts.canceled))
        and (newest := newest_version(asset_row, backfill.order)).pk
        != asset_row.producer_version_id
    }
    # Newer code may write assets that the frozen code does not write.
    outlets = [
        outlet
        for asset, version in newest_versions.items()
        for outlet in outlets_of(asset, version)
    ]
    policy.require_for_assets(user, Action.BACKFILL, outlets)
    return {asset.name: version.digest[:12] for asset, version in newest_versions.items()}


def _require_readable(backfill: Backfill) -> None:
    try:
        stored_scopes(backfill)
    except ValueError as error:
        # The frozen code asks for upstream partitions that the upstream assets do not have any
        # more.
        raise ConflictingRequest(
            {
                "": f"{backfill.name} cannot continue with the frozen definitions: clone"
                f" the backfill. {error}"
            }
        ) from error


def _require_retryable(backfill: Backfill) -> None:
    if backfill.state == BackfillState.CANCELING:
        raise ConflictingRequest(
            {
                "": f"{state_sentence(backfill)} Canceled partitions can be retried after the"
                " backfill has ended."
            }
        )
    if is_given_up(backfill):
        raise ConflictingRequest(
            {
                "": f"{backfill.name} was given up, and a retry would be given up too:"
                f" clone the backfill. {backfill.error}"
            }
        )


def object_to_retry(run_ids: Sequence[int]) -> dict[int, str]:
    """Return, by run, a sentence on why a run of a backfill cannot be retried by itself. The
    partitions of the runs stay locked until the transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_PARTITIONS, [list(run_ids)])
    return objections_to_retry(run_ids)


def objections_to_retry(run_ids: Sequence[int]) -> dict[int, str]:
    """Return, by run, a sentence on why a run of a backfill cannot be retried by itself."""
    with connection.cursor() as cursor:
        cursor.execute(_RUN_STATUS, [list(run_ids)])
        rows = cursor.fetchall()
    objections = {run_id: _objection(run_id, *status) for run_id, *status in rows}
    return {run_id: sentence for run_id, sentence in objections.items() if sentence}


def _objection(run_id: int, name: str, state: str, is_deleted: bool, is_replaced: bool) -> str:
    if is_deleted:
        return f"Run {run_id} belongs to {name}, which was deleted: re-run the run instead."
    if state == BackfillState.CANCELING:
        return f"Run {run_id} belongs to {name}, which is being canceled."
    if is_replaced:
        instead = (
            "Retry that backfill instead, or re-run this run."
            if state in ENDED_STATES
            else "Another run of that backfill covers the partitions."
        )
        return (
            f"Run {run_id} is superseded: {name} has queued some or all partitions of the run"
            f" again. {instead}"
        )
    return ""


def follow_retried(run_ids: Sequence[int], user: User) -> None:
    """Update the backfills of retried runs: partitions that had ended with these runs are active
    again, and the audit trail of the backfill has the retry.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REOPEN, [list(run_ids)])
        reopened_rows = cursor.fetchall()
    if not reopened_rows:
        return
    changes: dict[int, dict[str, int]] = {}
    for asset_row_id, _, state, number, _ in reopened_rows:
        change = changes.setdefault(asset_row_id, {"active": 0})
        change["active"] += number
        change[state] = -number
    for asset_row_id, change in sorted(changes.items()):
        shift_counts(asset_row_id, change)
    backfill_ids = {backfill_id for _, backfill_id, *_ in reopened_rows}
    reopen(backfill_ids)
    for backfill in Backfill.objects.filter(pk__in=backfill_ids).order_by("pk"):
        own_rows = [row for row in reopened_rows if row[1] == backfill.pk]
        detail = {
            "runs": len({run_id for *_, own_run_ids in own_rows for run_id in own_run_ids}),
            "partitions": sum(number for *_, number, _ in own_rows),
        }
        audit.record(user, "retry runs", "backfill", backfill.name, detail)
        # An earlier retry of the backfill has failed; a backfill with an error ends as failed.
        if backfill.error and not is_given_up(backfill):
            Backfill.objects.filter(pk=backfill.pk).update(error="")
        # Downstream partitions wait again, and are marked so before any further admission. The lock
        # of the backfill is not requested here: the holder of the lock may wait for the runs that
        # this transaction has locked.
        if backfill.assets.count() > 1:
            record_request(backfill, Verb.LOOK_AGAIN)
    derive_states(backfill_ids)
    # Another transaction may have canceled or deleted the backfill after object_to_retry looked.
    is_closed = Q(state=BackfillState.CANCELING) | Q(deleted=True)
    for backfill in Backfill.objects.filter(is_closed, pk__in=backfill_ids)[:1]:
        state_text = "was deleted" if backfill.deleted else "is being canceled"
        raise ConflictingRequest({"": f"{backfill.name} {state_text}."})
