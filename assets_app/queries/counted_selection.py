"""The partitions that the overview counts for an asset, as a selection."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from assets_app.models import Asset, AssetPartition
from assets_app.queries.grid_selection import (
    MOST_SELECTED,
    short_text,
    stale_texts,
    too_many,
)
from assets_app.queries.keys import still_known
from assets_app.queries.overdue import overdue_partitions
from slicewise import PartitionDefinition, PartitionKey, PartitionSet


@dataclass(frozen=True, slots=True)
class CountedSelection:
    """The text of a selection, and the local day of its last window, empty without windows."""

    text: str
    last_day: str


def counted_selection(asset: Asset, state: str, now: datetime) -> CountedSelection | None:
    """Return the failed, the overdue or the stale partitions of an asset, whatever the page of the
    grid and whatever else holds for the partitions; None for other states, and without such
    partitions. One statement at most, and two more for stale partitions of runs of several. Raises
    InvalidRequest on ``selection`` for more than a text can name.
    """
    definition = asset.definition
    if definition is None:
        return None
    texts = stale_texts(asset, None) if state == "stale" else _texts(_rows(asset, state, now))
    keys = list(still_known(definition, texts))
    if not keys:
        return None
    text = short_text(PartitionSet.of(definition, keys))
    return CountedSelection(text, _local_day(definition, keys[-1]))


def _texts(rows: QuerySet[Any] | None) -> list[str]:
    """Return the keys of the rows, as many as a selection may have."""
    if rows is None:
        return []
    texts = list(rows.values_list("key", flat=True)[: MOST_SELECTED + 1])
    if len(texts) > MOST_SELECTED:
        raise too_many()
    return texts


def _rows(asset: Asset, state: str, now: datetime) -> QuerySet[Any] | None:
    if state == "overdue":
        return overdue_partitions(asset, now)
    if state == "failed":
        own_rows = AssetPartition.objects.filter(asset=asset, identity=asset.identity)
        return own_rows.failed_now().order_by("window_start", "key")
    return None


def _local_day(definition: PartitionDefinition, key: PartitionKey) -> str:
    time_definition = definition.time_dimension
    if time_definition is None or key.time is None:
        return ""
    return key.time.start.astimezone(ZoneInfo(time_definition.timezone)).date().isoformat()
