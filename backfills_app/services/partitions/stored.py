"""The assets of a backfill as stored in rows, and the states of their partitions as sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import connection

import slicewise
from assets_app.execution.attempt.frozen import FrozenDefinition, all_frozen_definitions
from backfills_app.models import Backfill, BackfillAsset, BackfillOrder
from backfills_app.services.partitions.frozen_assets import (
    Definition,
    FrozenAsset,
    edges_of,
    outlets_of,
)
from backfills_app.services.partitions.positions import Range
from backfills_app.services.partitions.scopes import AssetScope, beginning_of, frozen_values
from partitions_app.models import PartitionDefinition, RuntimePartition
from slicewise.keys import WHOLE, key_from_json
from slicewise.partitions import is_runtime, select, select_ranges

# Adjacent positions of one label are one row, however many positions these are.
_ROWS = """
WITH labeled AS (
    SELECT position, {label} AS label
    FROM backfills_app_backfillpartition AS backfill_partition {joins}
    WHERE backfill_partition.backfill_asset_id = %(backfill_asset)s
      AND backfill_partition.position >= %(first)s AND backfill_partition.position < %(stop)s
        AND {condition}
), numbered AS (
    SELECT label, position,
           position - row_number() OVER (PARTITION BY label ORDER BY position) AS number
    FROM labeled
)
SELECT label, min(position), max(position) + 1 FROM numbered GROUP BY label, number ORDER BY 2
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredScope(AssetScope):
    """An asset of a backfill with its row."""

    row: BackfillAsset

    def rows(
        self,
        within: slicewise.PartitionSet,
        *,
        label: str = "''",
        joins: str = "",
        condition: str = "true",
    ) -> dict[str, slicewise.PartitionSet]:
        """Return the partitions of a subset that have rows, by ``label``.

        ``label``, ``joins`` and ``condition`` are SQL, with the rows of BackfillPartition under the
        name ``backfill_partition``.
        """
        ranges = self.positions.ranges(within)
        if not ranges:
            return {}
        parameters: dict[str, Any] = {
            "backfill_asset": self.row.pk, "first": ranges[0][0], "stop": ranges[-1][1],
        }  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(_ROWS.format(label=label, joins=joins, condition=condition), parameters)
            ranges_by_label: dict[str, list[Range]] = {}
            for name, first, stop in cursor.fetchall():
                ranges_by_label.setdefault(name, []).append((first, stop))
        return {
            name: self.positions.at(label_ranges) & within
            for name, label_ranges in ranges_by_label.items()
        }


def stored_scopes(backfill: Backfill) -> list[StoredScope]:
    """Return the assets of a backfill, upstream before downstream, each with its edges."""
    rows = backfill.assets.select_related(
        "asset__partition_definition", "producer_version"
    ).order_by("position", "pk")
    frozen_definitions = all_frozen_definitions(backfill.group_id)
    scopes: list[StoredScope] = []
    for row in rows.defer("producer_version__source"):
        asset = _frozen_asset(row, frozen_definitions.get(row.producer_version_id) or {})
        is_listed = backfill.order == BackfillOrder.LISTED
        scopes.append(
            StoredScope(
                **frozen_values(asset),
                row=row,
                role=row.role,
                terms=_selection_terms(asset.definition, row, is_listed=is_listed),
                edges=edges_of(asset, scopes, backfill.submitted_at, beginning_of),
                mapping=row.mapping,
            )
        )
    return scopes


def stored_partitions(row: BackfillAsset) -> slicewise.PartitionSet:
    """Return the partitions that a backfill covers of one asset.

    Raises ValueError for a selection that cannot be read any more.
    """
    definition = _definition_at_request(row)
    terms = _selection_terms(definition, row, is_listed=False)
    return terms[0] if terms else slicewise.PartitionSet(definition, ())


def _definition_at_request(row: BackfillAsset) -> Definition:
    # Rows are numbered by this definition, and a moved bound must not move the numbers.
    asset, spec = row.asset, row.partition
    if spec is None:
        spec = row.producer_version.spec.partition_of(asset.name)
    rule = PartitionDefinition.rule_of(spec, in_force=asset.partition_definition)
    return _with_removed_keys(rule)


def _frozen_asset(
    row: BackfillAsset, frozen_definitions: Mapping[int, FrozenDefinition]
) -> FrozenAsset:
    asset, version = row.asset, row.producer_version
    return FrozenAsset(
        asset=asset,
        version=version,
        definition=_definition_at_request(row),
        present=asset.definition,
        outlets=outlets_of(asset, version),
        strategy=row.strategy,
        params=row.params,
        frozen_definitions=frozen_definitions,
    )


def _with_removed_keys(definition: Definition) -> Definition:
    if not is_runtime(definition):
        return definition
    # Keys of this very definition: the asset may have another definition by now.
    runtime_partitions = RuntimePartition.objects.filter(
        definition__fingerprint=definition.fingerprint
    )
    contents = runtime_partitions.order_by("id").values_list("content", flat=True)
    return definition.known(key_from_json(content) for content in contents)


def _selection_terms(
    definition: Definition, row: BackfillAsset, *, is_listed: bool
) -> tuple[slicewise.PartitionSet, ...]:
    if definition is None:
        return (slicewise.PartitionSet.of(None, [WHOLE]),)
    if not row.selection:
        return ()
    if is_runtime(definition):
        return (select(definition, row.selection, longest=None),)
    return _read(definition, row.selection, is_listed)


@lru_cache(maxsize=64)
def _read(
    definition: slicewise.PartitionDefinition, text: str, is_listed: bool
) -> tuple[slicewise.PartitionSet, ...]:
    if is_listed:
        return select_ranges(definition, text, longest=None)
    return (select(definition, text, longest=None),)
