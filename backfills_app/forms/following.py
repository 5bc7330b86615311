"""The choices that depend on the chosen assets: segments, downstream assets, code versions."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assets_app.models import Asset, AssetDependency, ProducerVersion
from backfills_app.forms.period import MOST_SEGMENT_BOXES
from partitions_app.labels import label_of_key
from slicewise import Dimension, PartitionDefinition

MOST_VERSIONS = 30
_SEGMENTS_NAMED = 8
_DIGEST = 12
# The node above all chosen assets; no asset has this number.
_START = 0


@dataclass(frozen=True, slots=True)
class Segments:
    """A dimension without time: the name, and the first keys."""

    name: str
    examples: tuple[str, ...]
    number: int | None
    # All keys with their labels, if there are few enough for boxes.
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def hint(self) -> str:
        """A sentence on the text that can be typed."""
        key_list = ", ".join(self.examples)
        more = ", …" if self.number is None or self.number > len(self.examples) else ""
        return (
            f"{key_list}{more}; patterns such as a*. Empty for all."
            if key_list
            else "Empty for all."
        )


def segments_of(definition: PartitionDefinition | None) -> list[Segments]:
    """Return the dimensions without time, which a request may narrow."""
    if definition is None or definition.time_dimension is None:
        return []
    return [_segments(dimension) for dimension in definition.segment_dimensions]


def followers_of(assets: Sequence[Asset]) -> list[Asset]:
    """Return the downstream assets that can be backfilled together with some assets, in order.

    An asset comes after the assets that it depends on. Two queries, however large the graph.
    """
    downstream_ids: dict[int, list[int]] = defaultdict(list)
    edges = AssetDependency.objects.filter(downstream__active=True)
    for upstream, downstream in edges.values_list("upstream_id", "downstream_id"):
        downstream_ids[upstream].append(downstream)
    chosen = [asset.pk for asset in assets]
    downstream_ids[_START] = chosen
    ordered = [pk for pk in _in_order(_START, downstream_ids) if pk not in chosen]
    rows = Asset.objects.declared().filter(producer__current_version__isnull=False)
    assets_by_id = rows.select_related("producer__current_version").in_bulk(ordered)
    return [assets_by_id[pk] for pk in ordered if pk in assets_by_id]


def versions_of(asset: Asset) -> list[tuple[str, datetime]]:
    """Return versions of the code of an asset, newest first: the digest and the time of each
    version.
    """
    rows = ProducerVersion.objects.filter(producer=asset.producer_id).order_by("-id")
    digests = rows.values_list("bundle_version__digest", "created_at")[:MOST_VERSIONS]
    return [(digest[:_DIGEST], created_at) for digest, created_at in digests]


def _in_order(start: int, downstream_ids: dict[int, list[int]]) -> list[int]:
    """Return the nodes that can be reached from a start, without the start, each after all nodes
    from which an edge leads to it.
    """
    ordered: list[int] = []
    visited = {start}
    stack = [(start, iter(downstream_ids[start]))]
    while stack:
        node, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            ordered.append(node)
        elif child not in visited:
            visited.add(child)
            stack.append((child, iter(downstream_ids[child])))
    return ordered[-2::-1]


def _segments(dimension: Dimension) -> Segments:
    keys: Sequence[Any] = dimension.definition.keys()
    choices = (
        tuple((key.text, label_of_key(key)) for key in keys)
        if len(keys) <= MOST_SEGMENT_BOXES
        else ()
    )
    examples = tuple(key.text for key in keys[:_SEGMENTS_NAMED])
    return Segments(dimension.name, examples, len(keys), choices)
