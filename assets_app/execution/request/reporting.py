"""Reports of writes by other programs, from a program or a person (AIP-76, "asset events")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from django.conf import settings
from django.db import connection, transaction
from psycopg.types.json import Jsonb

import slicewise
from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.queue.claims import describe
from assets_app.execution.queue.messages import nudge_process_outbox
from assets_app.execution.queue.settling import COUNTS_FOLLOW
from assets_app.execution.request.requests import (
    in_flight_sentence,
    refuse_unfinished,
    require_declared,
    selected_rows,
)
from assets_app.models import Asset, Outbox, WriteReport
from assets_app.queries.clock import database_now
from slicewise.partitions import PartitionRow, partition_rows
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest

# Rows and bytes of partitions, by key text.
_Counts = dict[str, tuple[int | None, int | None]]

# Partitions without a row get one; all rows are locked, in the order in which claims lock rows.
_ADD = """
INSERT INTO assets_app_assetpartition
    (asset_id, identity, key, window_start, window_end, segment, bucket,
     state, version, due_again)
SELECT %(asset)s, %(identity)s, key, window_start, window_end, segment, bucket,
       'missing', 0, false
FROM unnest(
    %(keys)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
    %(segments)s::text[], %(buckets)s::date[]
) AS reported(key, window_start, window_end, segment, bucket)
ORDER BY key COLLATE "C"
ON CONFLICT (asset_id, identity, key) DO NOTHING
"""
_LOCK = """
SELECT partition.id, partition.key, partition.held_by_id IS NOT NULL
FROM assets_app_assetpartition AS partition
WHERE partition.asset_id = %(asset)s AND partition.identity = %(identity)s
  AND partition.key = ANY(%(keys)s::text[])
ORDER BY partition.asset_id, partition.identity, partition.key
FOR UPDATE OF partition
"""
# Partitions with later data than a write, and partitions whose last write was the same write.
_OUTDATED = """
SELECT partition.key FROM assets_app_assetpartition AS partition
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
LEFT JOIN assets_app_writereport AS report ON report.id = materialization.report_id
WHERE partition.id = ANY(%(partitions)s::bigint[]) AND partition.version > 0
  AND (partition.materialized_at > %(written_at)s OR report.metadata = %(metadata)s::jsonb)
"""
_WRITTEN = f"""
WITH held AS MATERIALIZED (
    SELECT partition.id, partition.asset_id, partition.identity, partition.bucket,
           partition.segment,
           partition.state AS old, 'materialized' AS new, reported.rows, reported.bytes
    FROM unnest(%(partitions)s::bigint[], %(rows)s::bigint[], %(bytes)s::bigint[])
        AS reported(id, rows, bytes)
    JOIN assets_app_assetpartition AS partition ON partition.id = reported.id
), written AS (
    UPDATE assets_app_assetpartition AS partition
    SET state = 'materialized', last_run_id = NULL,
        version = greatest(partition.version, partition.forgotten_version) + 1,
        rows = held.rows, bytes = held.bytes,
        materialized_at = least(now(), %(written_at)s::timestamptz)
    FROM held WHERE partition.id = held.id
    RETURNING partition.id, partition.version, partition.rows, partition.bytes
), {COUNTS_FOLLOW}
INSERT INTO assets_app_materialization
    (partition_id, version, report_id, rows, bytes, metadata, created_at)
SELECT id, version, %(report)s, rows, bytes, '{{}}', now() FROM written
"""  # noqa: S608  (a part of the statement that has one home)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedPartition:
    """A partition of a reported write, with counts of its own."""

    key: str
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedWrite:
    """The partitions of an asset that another program has written, with counts and metadata.

    Either ``selection`` names the partitions, with ``rows`` and ``bytes`` of a single partition, or
    ``partitions`` lists the partitions with counts of each. Both are empty only for an asset that
    is not partitioned.

    Messages about a write with a time, ``written_at``, may come late and more than once: the write
    leaves out partitions that were written later, and partitions whose last write has the same
    metadata. A write without a time is a write of now.
    """

    asset: Asset
    selection: str = ""
    rows: int | None = None
    bytes: int | None = None
    partitions: Sequence[ReportedPartition] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    written_at: datetime | None = None


class OutdatedWrite(InvalidRequest):
    """A write of which every partition was written later, or by the same write before."""


class _Locked(NamedTuple):
    id: int
    key: str
    is_held: bool


def report_write(write: ReportedWrite, *, user: User) -> WriteReport:
    """Record that the partitions were written: each gets its next version.

    Downstream partitions become due or stale as after a run. A write that is reported twice is
    recorded as two writes: an ``Idempotency-Key`` marks a message that is sent again. Raises
    InvalidRequest on ``asset``, ``selection``, ``rows``, ``bytes`` or ``partitions``,
    OutdatedWrite, and PermissionDenied.
    """
    policy.require(user, policy.Action.REPORT)
    asset = write.asset
    _require_external(asset)
    now = database_now()
    rows, counts = _listed(write, now) if write.partitions else _selected(write, now)
    with transaction.atomic():
        locked = _locked(asset, rows)
        if outdated_keys := _outdated_keys(write, locked):
            rows = [row for row in rows if row.key not in outdated_keys]
            locked = [row for row in locked if row.key not in outdated_keys]
        if not rows:
            raise OutdatedWrite({"selection": "Later writes are on record."})
        report = WriteReport.objects.create(
            asset=asset,
            selection=describe(rows),
            partition_count=len(rows),
            metadata=dict(write.metadata),
            reported_by=user,
            reported_by_name=user.get_username(),
            created_at=now,
        )
        _record(report, locked, counts, write.written_at)
        Outbox.objects.create(report=report)
        nudge_process_outbox()
        selection = (not outdated_keys and write.selection) or report.selection
        detail = {"selection": selection, "partitions": len(rows), "report": report.pk}
        audit.record(user, "report_write", "asset", asset.name, detail)
    return report


def _require_external(asset: Asset) -> None:
    """Raise InvalidRequest for an asset that is materialized here.

    Such an asset gets its versions from runs: only runs know that the data is in place, and which
    upstream versions were read.
    """
    require_declared(asset)
    if asset.producer_id is not None:
        raise InvalidRequest(
            {
                "asset": f"{asset.name} is materialized here: materialize the asset instead. Writes"
                " are reported only for assets declared with Asset(...)."
            }
        )


def _selected(write: ReportedWrite, now: datetime) -> tuple[list[PartitionRow], _Counts]:
    """Return the selected partitions in order, and the counts if a single partition is selected."""
    instead = "Report the partitions in several requests."
    rows = selected_rows(write.asset, write.selection, now=now, instead=instead)
    _require_single(write, rows)
    return rows, {row.key: (write.rows, write.bytes) for row in rows}


def _listed(write: ReportedWrite, now: datetime) -> tuple[list[PartitionRow], _Counts]:
    """Return the listed partitions in order, and the counts of each by its key text.

    Raises InvalidRequest for a list that is too long, for a partition that is listed twice, does
    not exist or is not over yet, and for a selection or counts beside the list.
    """
    definition, most = write.asset.definition, settings.MAX_PARTITIONS_PER_REQUEST
    if definition is None:
        _refuse(f"{write.asset.name} is not partitioned: give rows and bytes without a list.")
    if write.selection.strip() or write.rows is not None or write.bytes is not None:
        _refuse("The list names the partitions and their counts: leave the other fields empty.")
    if len(write.partitions) > most:
        _refuse(
            f"{len(write.partitions):,} partitions are more than one request may name ({most:,},"
            " setting MAX_PARTITIONS_PER_REQUEST). Report the partitions in several requests."
        )
    keys = []
    counts: _Counts = {}
    for partition in write.partitions:
        try:
            key = definition.parse(partition.key)
        except ValueError as error:
            raise InvalidRequest({"partitions": str(error)}) from error
        if key.text in counts:
            _refuse(f"{key.text} is named twice.")
        keys.append(key)
        counts[key.text] = partition.rows, partition.bytes
    rows = list(partition_rows(definition, slicewise.PartitionSet.of(definition, keys)))
    refuse_unfinished(rows, now=now, field="partitions")
    return rows, counts


def _refuse(sentence: str) -> NoReturn:
    raise InvalidRequest({"partitions": sentence})


def _require_single(write: ReportedWrite, rows: Sequence[PartitionRow]) -> None:
    reported_counts = {"rows": write.rows, "bytes": write.bytes}
    wrong = {
        name: f"The selection has {len(rows):,} partitions: give {name} for a single partition, or"
        " for each in the list partitions."
        for name, number in reported_counts.items()
        if number is not None and len(rows) > 1
    }
    if wrong:
        raise InvalidRequest(wrong)


def _locked(asset: Asset, rows: Sequence[PartitionRow]) -> list[_Locked]:
    """Lock the rows of partitions, with rows for new partitions. Raises ConflictingRequest."""
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
    held_keys = {partition_row.key for partition_row in locked if partition_row.is_held}
    if held_keys:
        blocked = [row for row in rows if row.key in held_keys]
        raise ConflictingRequest({"selection": in_flight_sentence(asset, blocked)})
    return locked


def _outdated_keys(write: ReportedWrite, locked: Sequence[_Locked]) -> set[str]:
    """Return the partitions that the write leaves out; read when the rows are locked."""
    if write.written_at is None:
        return set()
    values: dict[str, Any] = {
        "partitions": [row.id for row in locked],
        "written_at": write.written_at,
        "metadata": Jsonb(dict(write.metadata)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_OUTDATED, values)
        return {key for (key,) in cursor.fetchall()}


def _record(
    report: WriteReport, locked: Sequence[_Locked], counts: _Counts, written_at: datetime | None
) -> None:
    written: dict[str, Any] = {
        "partitions": [partition_row.id for partition_row in locked],
        "report": report.pk,
        "rows": [counts[partition_row.key][0] for partition_row in locked],
        "bytes": [counts[partition_row.key][1] for partition_row in locked],
        "written_at": written_at,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WRITTEN, written)
