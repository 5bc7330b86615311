"""The list of a backfill's partitions, narrowed by asset, state and reason, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from backfills_app.models import Backfill, BackfillAsset, BackfillPartition

_ASSETS_IN_A_STATEMENT = 50
# Each asset and each wanted value is a range of an index, which is read from the position on and
# as far as the page: reading costs the same at the end of a million partitions, and beside other
# backfills. The value is compared by >= and <= instead of =, and orders the rows: otherwise the
# planner takes rows of any state to be near, and reads through those of other states.
_PAGE = """
SELECT found.* FROM unnest(%(asset_rows)s::bigint[]) WITH ORDINALITY AS asset_row (id, place)
CROSS JOIN unnest(%(values)s::text[]) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM backfills_app_backfillpartition AS backfill_partition
    WHERE backfill_partition.backfill_asset_id = asset_row.id AND {condition}
        AND backfill_partition.position
            > CASE WHEN asset_row.id = %(last_asset_row)s THEN %(last_position)s ELSE -1 END
    ORDER BY {order}position LIMIT %(most)s
) AS found
ORDER BY asset_row.place, found.position LIMIT %(most)s
"""
_ALL = _PAGE.format(condition="true", order="")
_BY_STATE = _PAGE.format(
    condition="lower(state) >= wanted.value AND lower(state) <= wanted.value",
    order="lower(state), ",
)
_BY_REASON = _PAGE.format(
    condition="state = 'skipped' AND reason >= wanted.value AND reason <= wanted.value",
    order="reason, ",
)


class ListPosition(NamedTuple):
    """The place of a partition in the list: the primary key of the asset's row in the backfill, and
    the position among the asset's partitions.
    """

    asset_row: int
    position: int


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The partitions that a list has: of one asset if ``asset`` is a name, in one of the states and
    skipped for one of the reasons if there are any.
    """

    asset: str = ""
    states: Sequence[str] = ()
    reasons: Sequence[str] = ()


def list_of_partitions(
    backfill: Backfill, narrowed: Narrowed, last: ListPosition | None, most: int
) -> list[BackfillPartition]:
    """Return at most so many partitions after the last one: by asset, upstream before downstream,
    then by position. Raises LookupError if the backfill has no such asset row as ``last`` names.
    """
    asset_rows = (row for row in _asset_rows_from(backfill, last) if _may_have_some(row, narrowed))
    partitions: list[BackfillPartition] = []
    while len(partitions) < most and (rows := list(islice(asset_rows, _ASSETS_IN_A_STATEMENT))):
        partitions += _partitions_of(rows, narrowed, last, most - len(partitions))
    return partitions


def _asset_rows_from(backfill: Backfill, last: ListPosition | None) -> list[BackfillAsset]:
    with_rule = backfill.assets.select_related("asset__partition_definition")
    asset_rows = with_rule.defer("asset__partition_definition__spec")
    rows = list(asset_rows.order_by("position", "pk"))
    if last is None:
        return rows
    row_indexes = {row.pk: index for index, row in enumerate(rows)}
    return rows[row_indexes[last.asset_row] :]


def _may_have_some(row: BackfillAsset, narrowed: Narrowed) -> bool:
    # The counts change in the transaction that changes the partitions.
    if narrowed.asset and row.asset.name != narrowed.asset:
        return False
    states = set(narrowed.states or BackfillPartition.State.values)
    if narrowed.reasons:
        states &= {BackfillPartition.State.SKIPPED.value}
    return any(getattr(row, state) for state in states)


def _partitions_of(
    rows: Sequence[BackfillAsset], narrowed: Narrowed, last: ListPosition | None, most: int
) -> list[BackfillPartition]:
    statement, values = _ALL, [""]
    if narrowed.reasons:
        statement, values = _BY_REASON, sorted(set(narrowed.reasons))
    elif narrowed.states:
        statement, values = _BY_STATE, sorted(set(narrowed.states))
    by_pk = {row.pk: row for row in rows}
    parameters = {
        "asset_rows": list(by_pk),
        "values": values,
        "last_asset_row": last.asset_row if last else None,
        "last_position": last.position if last else None,
        "most": most,
    }
    partitions = list(BackfillPartition.objects.raw(statement, parameters))
    for partition in partitions:
        partition.backfill_asset = by_pk[partition.backfill_asset_id]
    return partitions
