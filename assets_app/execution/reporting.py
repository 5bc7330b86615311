"""Writes that something else has done, told by a program or a person (AIP-76, "asset events")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.utils import timezone

from accounts_app import audit, policy
from accounts_app.errors import ConflictingRequest, InvalidRequest
from accounts_app.models import User
from assets_app.execution.claims import describe
from assets_app.execution.messages import nudge_judge
from assets_app.execution.requests import in_flight_sentence, require_declared, selected_rows
from assets_app.execution.settling import COUNTS_FOLLOW
from assets_app.models import Asset, Outbox, WriteReport
from slicewise.rows import PartitionRow

# Slices that nothing happened to so far get their rows; all of them are locked, in the order in
# which claims take them.
_ADD = """
INSERT INTO assets_app_assetpartition
    (asset_id, identity, key, window_start, window_end, segment, bucket,
     state, version, due_again)
SELECT %(asset)s, %(identity)s, key, window_start, window_end, segment, bucket,
       'missing', 0, false
FROM unnest(
    %(keys)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
    %(segments)s::text[], %(buckets)s::date[]
) AS told(key, window_start, window_end, segment, bucket)
ORDER BY key COLLATE "C"
ON CONFLICT (asset_id, identity, key) DO NOTHING
"""
_LOCK = """
SELECT slice.id, slice.key, slice.held_by_id IS NOT NULL
FROM assets_app_assetpartition AS slice
WHERE slice.asset_id = %(asset)s AND slice.identity = %(identity)s
  AND slice.key = ANY(%(keys)s::text[])
ORDER BY slice.asset_id, slice.identity, slice.key
FOR UPDATE OF slice
"""
_WRITTEN = f"""
WITH held AS MATERIALIZED (
    SELECT slice.id, slice.asset_id, slice.identity, slice.bucket, slice.segment,
           slice.state AS old, 'materialized' AS new
    FROM assets_app_assetpartition AS slice WHERE slice.id = ANY(%(slices)s)
), written AS (
    UPDATE assets_app_assetpartition AS slice
    SET state = 'materialized', version = slice.version + 1, last_run_id = NULL,
        rows = %(rows)s, bytes = %(bytes)s, materialized_at = now()
    FROM held WHERE slice.id = held.id
    RETURNING slice.id, slice.version
), {COUNTS_FOLLOW}
INSERT INTO assets_app_materialization
    (slice_id, version, report_id, rows, bytes, metadata, created_at)
SELECT id, version, %(report)s, %(rows)s, %(bytes)s, '{{}}', now() FROM written
"""  # noqa: S608  (a part of the statement that has one home)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedWrite:
    """Which partitions of an asset something else has written, and what is known of it.

    ``selection`` is empty only for an asset that is not partitioned. ``rows`` and ``bytes`` are of
    a single partition.
    """

    asset: Asset
    selection: str = ""
    rows: int | None = None
    bytes: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class _Locked(NamedTuple):
    id: int
    key: str
    is_held: bool


def report_write(write: ReportedWrite, *, user: User) -> WriteReport:
    """Record that the partitions were written: each gets its next version, and what depends on
    them becomes due or stale as after a run.

    Told twice it is two writes: an ``Idempotency-Key`` tells apart a message sent again. Raises
    InvalidRequest on ``asset``, ``selection``, ``rows`` or ``bytes``, and PermissionDenied.
    """
    policy.require(user, policy.Action.REPORT)
    asset = write.asset
    _require_external(asset)
    now = timezone.now()
    rows = selected_rows(asset, write.selection, now=now, instead="Tell of them in several parts.")
    _require_single(write, rows)
    with transaction.atomic():
        report = WriteReport.objects.create(
            asset=asset,
            selection=describe(rows),
            partition_count=len(rows),
            metadata=dict(write.metadata),
            told_by=user,
            told_by_name=user.get_username(),
            created_at=now,
        )
        _record(report, rows, write)
        Outbox.objects.create(report=report)
        nudge_judge()
        detail = {"selection": write.selection, "partitions": len(rows), "report": report.pk}
        audit.record(user, "report_write", "asset", asset.name, detail)
    return report


def _require_external(asset: Asset) -> None:
    """What is made here gets its versions from runs: that its data is in place, and what it was
    made from, is known of these alone.
    """
    require_declared(asset)
    if asset.producer_id is not None:
        raise InvalidRequest(
            {
                "asset": f"{asset.name} is made here: materialize it instead. Only of an asset"
                " declared with Asset(...), which something else writes, can a write be told."
            }
        )


def _require_single(write: ReportedWrite, rows: Sequence[PartitionRow]) -> None:
    said = {"rows": write.rows, "bytes": write.bytes}
    wrong = {
        name: f"These are {len(rows):,} partitions: {name} can be told of one at a time."
        for name, number in said.items()
        if number is not None and len(rows) > 1
    }
    if wrong:
        raise InvalidRequest(wrong)


def _record(report: WriteReport, rows: Sequence[PartitionRow], write: ReportedWrite) -> None:
    asset = write.asset
    values: dict[str, Any] = {
        "asset": asset.pk,
        "identity": asset.identity,
        "keys": [row.key for row in rows],
        "starts": [row.start for row in rows],
        "ends": [row.end for row in rows],
        "segments": [row.segment for row in rows],
        "buckets": [row.bucket for row in rows],
    }
    with connection.cursor() as cursor:
        cursor.execute(_ADD, values)
        cursor.execute(_LOCK, values)
        locked = [_Locked(*row) for row in cursor.fetchall()]
        held = {piece.key for piece in locked if piece.is_held}
        if held:
            blocked = [row for row in rows if row.key in held]
            raise ConflictingRequest({"selection": in_flight_sentence(asset, blocked)})
        written: dict[str, Any] = {
            "slices": [piece.id for piece in locked],
            "report": report.pk,
            "rows": write.rows,
            "bytes": write.bytes,
        }
        cursor.execute(_WRITTEN, written)
