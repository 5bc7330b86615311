"""The expected partitions, computed from the definitions alone."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import slicewise
from bench.soak.record import Asset, Record
from slicewise.keys.product_key import WHOLE
from slicewise.partitions.due import ended_between
from slicewise.partitions.rows import partition_rows

# The schedule begins in the transaction that declares the asset: a window that ends then may be
# on either side.
_BEGINNING = timedelta(seconds=1)


def expected_keys(asset: Asset, record: Record, until: datetime) -> set[str]:
    """Return the key texts of all partitions of an asset that came due until then; none without a
    schedule.
    """
    if asset.schedule is None:
        return set()
    if asset.by_time:
        return _by_time(asset)
    keys = _candidates(asset, record, until)
    return {text for text, key in keys.items() if _is_due(asset, key, asset.schedule, record)}


def _by_time(asset: Asset) -> set[str]:
    definition = asset.definition
    if definition is None:
        return {WHOLE.text}
    if isinstance(definition, slicewise.PartitionAtRuntime):
        return {"always"}
    if asset.handled_until is None:
        return set()
    since = asset.activated_at + _BEGINNING
    return _texts(ended_between(definition, since, asset.handled_until))


def _candidates(asset: Asset, record: Record, until: datetime) -> dict[str, Any]:
    """Return the partitions downstream of materialized partitions, with ended windows."""
    found: dict[str, Any] = {}
    for (downstream, upstream), mapping in record.mappings.items():
        made = record.made(upstream)
        if downstream != asset.name or not made:
            continue
        above = record.assets[upstream].definition
        if asset.definition is None:
            found[WHOLE.text] = WHOLE
        elif isinstance(asset.definition, slicewise.PartitionAtRuntime):
            found |= dict.fromkeys(made)
        elif above is not None:
            keys = [above.parse(text) for text in made]
            below = slicewise.downstream_partitions(above, asset.definition, keys, mapping)
            rows = zip(below, partition_rows(asset.definition, below), strict=True)
            found |= {row.key: key for key, row in rows if row.end is None or row.end <= until}
    return found


def _is_due(asset: Asset, key: Any, schedule: dict[str, Any], record: Record) -> bool:
    """Return whether all upstream partitions that the schedule needs are materialized."""
    if schedule["kind"] == "asset":
        return _is_materialized(asset, key, schedule["name"], record)
    operands = (_is_due(asset, key, operand, record) for operand in schedule["of"])
    return all(operands) if schedule["kind"] == "all" else any(operands)


def _is_materialized(asset: Asset, key: Any, upstream: str, record: Record) -> bool:
    made, above = record.made(upstream), record.assets[upstream].definition
    if asset.definition is None or isinstance(asset.definition, slicewise.PartitionAtRuntime):
        return bool(made)
    if above is None:
        return WHOLE.text in made
    mapping = record.mappings[asset.name, upstream]
    needed = slicewise.upstream_partitions(asset.definition, above, [key], mapping)
    return not needed.blocking and _texts(needed) <= made


def _texts(keys: Iterable[Any]) -> set[str]:
    return {key.text for key in keys}
