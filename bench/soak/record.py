"""The record at the end, read once: assets, partitions, and the runs of the partitions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

import slicewise
from partitions_app.edges import mapping_of
from slicewise_server.stack.demo.client import Client

_ASSETS = """
SELECT asset.name, rule.spec, rule.identity, schedule.rule AS schedule, schedule.by_time,
       schedule.handled_until, asset.activated_at,
       (SELECT coalesce(sum(tick.existing), 0) FROM assets_app_scheduletick AS tick
        WHERE tick.schedule_id = schedule.id) AS left_out_by_ticks
FROM assets_app_asset AS asset
LEFT JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
LEFT JOIN assets_app_schedule AS schedule ON schedule.producer_id = asset.producer_id
ORDER BY asset.name
"""
_EDGES = """
SELECT downstream.name AS downstream, upstream.name AS upstream, edge.mapping
FROM assets_app_assetdependency AS edge
JOIN assets_app_asset AS downstream ON downstream.id = edge.downstream_id
JOIN assets_app_asset AS upstream ON upstream.id = edge.upstream_id
WHERE edge.scheduling
"""
# Each partition ever materialized, with the latest materialization and the path of the data.
_PARTITIONS = """
SELECT partition.id, asset.name AS asset, partition.key, partition.version, partition.state,
       materialization.run_id, materialization.attempt_id, outlet.root, outlet.name_on_disk,
           part.path,
       (SELECT count(*) FROM assets_app_materialization AS each
        WHERE each.partition_id = partition.id)
           AS recorded
FROM assets_app_assetpartition AS partition
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
LEFT JOIN assets_app_attemptoutlet AS outlet
    ON outlet.attempt_id = materialization.attempt_id AND outlet.asset_id = partition.asset_id
LEFT JOIN assets_app_runpartition AS part
    ON part.run_id = materialization.run_id AND part.partition_id = partition.id
WHERE partition.version > 0 AND partition.identity <> 'discovery'
"""
# Upstream partitions that were read by the latest runs and materialized again since.
_BEHIND = """
SELECT asset.name AS asset, partition.key, upstream.name AS upstream, read.key AS upstream_key,
       input.version AS had, read.version AS has
FROM assets_app_assetpartition AS partition
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
JOIN assets_app_attemptinput AS input ON input.attempt_id = materialization.attempt_id
JOIN assets_app_assetpartition AS read ON read.id = input.partition_id
JOIN assets_app_asset AS upstream ON upstream.id = read.asset_id
WHERE read.version > input.version AND partition.identity <> 'discovery'
"""
_FAILED = """
SELECT run.id, asset.name AS asset, run.selection, run.state, run.error
FROM assets_app_run AS run JOIN assets_app_asset AS asset ON asset.id = run.asset_id
WHERE run.state NOT IN ('succeeded') ORDER BY run.id
"""
_LEFT = {
    "runs unfinished": "SELECT count(*) FROM assets_app_run WHERE ended_at IS NULL",
    "runs to be evaluated": "SELECT count(*) FROM assets_app_outbox",
    "partitions due again": "SELECT count(*) FROM assets_app_assetpartition"
    " WHERE due_again AND (due_at IS NULL OR due_at <= now())",
    "partitions held": "SELECT count(*) FROM assets_app_assetpartition"
    " WHERE held_by_id IS NOT NULL",
    "backfills unfinished": "SELECT count(*) FROM backfills_app_backfill"
    " WHERE run_end_date IS NULL",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset: the partition definition and the schedule."""

    name: str
    definition: slicewise.PartitionDefinition | None
    schedule: dict[str, Any] | None
    by_time: bool
    handled_until: datetime | None
    activated_at: datetime
    # Partitions that ticks did not queue because other runs had materialized the partitions.
    left_out_by_ticks: int


@dataclass(frozen=True, slots=True)
class Record:
    """The whole record. ``partitions`` has all partitions ever materialized, by asset and key."""

    assets: dict[str, Asset]
    mappings: dict[tuple[str, str], slicewise.PartitionMapping | None]
    partitions: dict[tuple[str, str], Any]
    behind: list[Any]
    failed: list[Any]
    runs: dict[str, int]
    attempts: dict[str, int]
    materializations: int

    @classmethod
    def read(cls, connection: psycopg.Connection) -> "Record":
        """Read the present record."""
        with connection.cursor(row_factory=namedtuple_row) as cursor:

            def rows(statement: str) -> list[Any]:
                return cursor.execute(statement.encode()).fetchall()

            return cls(
                assets={row.name: _asset(row) for row in rows(_ASSETS)},
                mappings={
                    (row.downstream, row.upstream): mapping_of(row.mapping) for row in rows(_EDGES)
                },
                partitions={(row.asset, row.key): row for row in rows(_PARTITIONS)},
                behind=rows(_BEHIND),
                failed=rows(_FAILED),
                runs=dict(rows("SELECT state, count(*) FROM assets_app_run GROUP BY 1")),
                attempts=dict(
                    rows("SELECT outcome, count(*) FROM assets_app_runattempt GROUP BY 1")
                ),
                materializations=rows("SELECT count(*) FROM assets_app_materialization")[0][0],
            )

    @staticmethod
    def pause_all(client: Client, connection: psycopg.Connection) -> datetime:
        """Pause every schedule by time; return the time of the first pause."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT clock_timestamp(), array_agg(asset.name) FROM assets_app_asset AS asset"
                " JOIN assets_app_schedule AS schedule USING (producer_id)"
                " WHERE schedule.by_time"
            )
            found = cursor.fetchone()
        assert found is not None
        began, names = found
        for name in names:
            client.post(f"/assets/{name}/pause/")
        assert isinstance(began, datetime)
        return began

    def made(self, asset: str) -> set[str]:
        """Return the keys of the materialized partitions of an asset."""
        return {key for name, key in self.partitions if name == asset}


def unfinished(connection: psycopg.Connection) -> list[str]:
    """Return the unfinished work."""
    found = []
    for what, statement in _LEFT.items():
        row = connection.execute(statement.encode()).fetchone()
        if row is not None and row[0]:
            found.append(f"{what}: {row[0]}")
    return found


def _asset(row: Any) -> Asset:
    spec = row.spec
    definition = None if spec is None else slicewise.PartitionDefinition.from_json(spec)
    schedule = None if row.schedule is None else row.schedule["schedule"]
    return Asset(
        name=row.name,
        definition=definition,
        schedule=schedule,
        by_time=bool(row.by_time),
        handled_until=row.handled_until,
        activated_at=row.activated_at,
        left_out_by_ticks=int(row.left_out_by_ticks),
    )
