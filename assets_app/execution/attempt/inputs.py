"""The inputs of a run: the upstream partitions that its partitions need, with their versions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Min

import slicewise
from assets_app.execution.attempt.frozen import as_frozen, frozen_definitions
from assets_app.execution.attempt.keys import sent_keys
from assets_app.execution.data.connections import connection_of
from assets_app.models import Asset, AssetPartition, ProducerVersion, Run, RunAttempt
from assets_app.models.partitions import AssetPartitionQuerySet
from assets_app.queries.clock import database_now
from assets_app.queries.edges import with_time_on_record
from partitions_app.edges import Edge, mapping_of
from partitions_app.rules import nonexistent_json
from slicewise.partitions import NONE_NONEXISTENT, Nonexistent

_KEEP = """
INSERT INTO assets_app_attemptinput (attempt_id, partition_id, version)
SELECT %s, upstream.id, upstream.version FROM ({chosen}) AS upstream(id, version)
"""

# Each attempt may have read millions of partitions: a few attempts are cleared with each run, not
# all with one.
_ATTEMPTS_AT_ONCE = 5
_FORGET = """
WITH superseded AS MATERIALIZED (
    SELECT attempt.id
    FROM assets_app_runattempt AS attempt
    WHERE attempt.keeps_inputs_of_id = %(asset)s AND attempt.ended_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM assets_app_materialization AS materialization
        JOIN assets_app_assetpartition AS partition
            ON partition.id = materialization.partition_id
           AND materialization.version = greatest(partition.version, partition.forgotten_version)
        WHERE materialization.run_id = attempt.run_id AND materialization.attempt_id = attempt.id
    )
    LIMIT %(attempts)s
    FOR UPDATE OF attempt SKIP LOCKED
), forgotten AS (
    UPDATE assets_app_runattempt SET keeps_inputs_of_id = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM superseded))
)
DELETE FROM assets_app_attemptinput WHERE attempt_id = ANY(ARRAY(SELECT id FROM superseded))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamInput:
    """An upstream asset of a run: the keys of materialized and of needed, missing partitions."""

    asset: Asset
    # In order of time, then segment. There may be millions of keys: no other column is read.
    keys: Sequence[str]
    missing: Sequence[str]
    # When the oldest of the materialized partitions was materialized.
    made_since: datetime | None = None
    # Needed partitions that the upstream definition does not have.
    nonexistent: Nonexistent = NONE_NONEXISTENT
    # Number of partitions that the upstream asset excludes: none of these is needed.
    excluded: int = 0
    # False for an asset that only schedules: its versions are stored, its data is not read.
    is_inlet: bool = True
    # The file in the run's own bundle that declares validations of an asset written by another
    # program, so that the run validates the data that it reads; empty without such a declaration.
    declared_in: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON for the runner."""
        row = self.asset.partition_definition
        return {
            "uri": self.asset.uri or None,
            "partition": None if row is None else row.spec,
            "partitions": sent_keys(self.asset.definition, self.keys),
            "missing": list(self.missing),
            "nonexistent": nonexistent_json(self.nonexistent),
            "excluded": self.excluded,
            "materialized_at": self.made_since and self.made_since.isoformat(),
            "declared_in": self.declared_in or None,
            "format": self.asset.format or None,
            "columns": self.asset.columns,
            "connection": connection_of(self.asset.canonical_uri),
            "is_recorded": True,
        }


def read_inputs(
    run: Run,
    keys: Sequence[str],
    *,
    is_discovering: bool = False,
    attempt: RunAttempt | None = None,
) -> list[UpstreamInput]:
    """Return the upstream assets of a run, for partitions of these keys.

    Upstream are the inlets of the run's function, and the assets that schedule the function. Takes
    a few statements for each asset. A run that discovers partitions reads as if the asset were not
    partitioned. The versions of materialized partitions are stored with the ``attempt``, if one is
    given.

    The run's own version says how its partitions are defined and mapped. Upstream assets are read
    by the definitions that were in force when the run's backfill was accepted, or for other runs by
    the present definitions. Raises ValueError if a definition does not have one of the keys.
    """
    version = run.producer_version
    spec = version.spec
    downstream = None if is_discovering else version.definition_of(run.asset.name)
    upstream = Asset.objects.select_related("partition_definition").filter(
        name__in=spec.upstream_names
    )
    definitions = frozen_definitions(run.group_id, version.pk)
    return [
        replace(
            _input(
                downstream,
                as_frozen(asset, definitions),
                keys,
                spec.mappings.get(asset.name),
                attempt,
            ),
            # Validated data is read, too.
            is_inlet=asset.name in [*spec.inlets, *spec.inlet_validations],
            declared_in=_declared_in(asset, version),
        )
        for asset in upstream
    ]


def forget_superseded(asset: Asset) -> None:
    """Delete the stored inputs of attempts whose materializations of the asset are superseded.

    An asset that is not partitioned may read millions of partitions each time: only the inputs of
    the present version and of the attempt under way are kept. A few attempts are cleared at a time:
    the others follow with the next runs.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"asset": asset.pk, "attempts": _ATTEMPTS_AT_ONCE})


def _declared_in(asset: Asset, version: ProducerVersion) -> str:
    validated = asset.producer_id is None and asset.outlet_validations
    in_own_bundle = asset.bundle_id == version.bundle_version.bundle_id
    return asset.file if validated and in_own_bundle else ""


def _input(
    downstream: slicewise.PartitionDefinition | None,
    upstream: Asset,
    keys: Sequence[str],
    mapping: dict[str, Any] | None,
    attempt: RunAttempt | None,
) -> UpstreamInput:
    materialized = AssetPartition.objects.materialized_of(upstream)
    edge = Edge(downstream=downstream, upstream=upstream.definition, mapping=mapping_of(mapping))
    if edge.reads_whatever_exists or (mapping is None and edge.upstream is None):
        # The materialized partitions of the whole upstream asset: missing partitions are shown,
        # not required.
        present = _materialized(materialized, attempt)
        whole_is_missing = edge.upstream is None and not present.keys
        return UpstreamInput(
            asset=upstream,
            keys=present.keys,
            missing=[""] if whole_is_missing else [],
            made_since=present.made_since,
        )
    needed = with_time_on_record(edge, upstream, database_now()).needed_by_texts(keys)
    needed_keys = [key.text for key in needed]
    present = (
        _materialized(materialized.filter(key__in=needed_keys), attempt)
        if needed_keys
        else _Materialized([], None)
    )
    present_keys = set(present.keys)
    return UpstreamInput(
        asset=upstream,
        keys=present.keys,
        missing=[key for key in needed_keys if key not in present_keys],
        made_since=present.made_since,
        nonexistent=needed.blocking,
        excluded=needed.excluded.partitions,
    )


class _Materialized(NamedTuple):
    keys: Sequence[str]
    made_since: datetime | None


def _materialized(chosen: AssetPartitionQuerySet, attempt: RunAttempt | None) -> _Materialized:
    """Return keys and oldest time of materialized partitions; store the versions with the attempt.

    The versions come first: a partition that is materialized between the statements is read by the
    run, and counts as newer than the version that the run has read, never the other way round.
    """
    if attempt is not None:
        statement, values = chosen.values_list("pk", "version").query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(_KEEP.format(chosen=statement), [attempt.pk, *values])
    in_order = chosen.order_by("window_start", "segment")
    return _Materialized(
        list(in_order.values_list("key", flat=True)),
        chosen.aggregate(since=Min("materialized_at"))["since"],
    )
