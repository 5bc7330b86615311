"""What a person can choose from, once an asset is chosen: segments, downstream assets, versions."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assets_app.models import Asset, AssetDependency, ProducerVersion
from partitions_app.rules import has_time
from slicewise import Dimension, PartitionDefinition

MOST_VERSIONS = 30
_SEGMENTS_NAMED = 8
_DIGEST = 12
# Stands above all that were chosen; no asset has this number.
_START = 0


@dataclass(frozen=True, slots=True)
class Segments:
    """A dimension without time: its name, and the first of its keys."""

    name: str
    examples: tuple[str, ...]
    number: int | None

    @property
    def hint(self) -> str:
        """What can be typed."""
        named = ", ".join(self.examples)
        more = ", …" if self.number is None or self.number > len(self.examples) else ""
        return f"{named}{more}; patterns such as a*. Empty for all." if named else "Empty for all."


def segments_of(definition: PartitionDefinition | None) -> list[Segments]:
    """Return the dimensions beside time, which a request may narrow."""
    if definition is None or definition.time_dimension is None:
        return []
    return [_segments(dimension) for dimension in definition.segment_dimensions]


def followers_of(assets: Sequence[Asset]) -> list[Asset]:
    """Return the downstream assets that can be backfilled together with some assets, in order.

    An asset comes after the assets that it depends on. Two statements, whatever the graph.
    """
    below: dict[int, list[int]] = defaultdict(list)
    edges = AssetDependency.objects.filter(downstream__active=True)
    for upstream, downstream in edges.values_list("upstream_id", "downstream_id"):
        below[upstream].append(downstream)
    chosen = [asset.pk for asset in assets]
    below[_START] = chosen
    ordered = [pk for pk in _in_order(_START, below) if pk not in chosen]
    rows = Asset.objects.declared().filter(producer__current_version__isnull=False)
    found = rows.select_related("producer__current_version").in_bulk(ordered)
    return [found[pk] for pk in ordered if pk in found and has_time(found[pk].definition)]


def versions_of(asset: Asset) -> list[tuple[str, datetime]]:
    """Return versions of the code that makes the asset, newest first: name and time of each."""
    rows = ProducerVersion.objects.filter(producer=asset.producer_id).order_by("-id")
    named = rows.values_list("bundle_version__digest", "created_at")[:MOST_VERSIONS]
    return [(digest[:_DIGEST], created_at) for digest, created_at in named]


def _in_order(start: int, below: dict[int, list[int]]) -> list[int]:
    """What is reached from there without it, each after all that it is reached by."""
    ordered: list[int] = []
    seen = {start}
    stack = [(start, iter(below[start]))]
    while stack:
        node, rest = stack[-1]
        child = next(rest, None)
        if child is None:
            stack.pop()
            ordered.append(node)
        elif child not in seen:
            seen.add(child)
            stack.append((child, iter(below[child])))
    return ordered[-2::-1]


def _segments(dimension: Dimension) -> Segments:
    keys: Sequence[Any] = dimension.definition.keys()
    return Segments(dimension.name, tuple(key.text for key in keys[:_SEGMENTS_NAMED]), len(keys))
