"""The assets that edges lead to from one asset, in one direction, and these edges, for pages that
follow partitions.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.asset_graph import within_reach
from assets_app.queries.mapping_words import Side, mapping_words

_MOST_ASSETS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedAsset:
    """An asset that edges lead to: the number of edges on the way, and its partitions."""

    asset: Asset
    distance: int
    # The number of assets that are not shown and lead to the asset by one edge.
    hidden_neighbours: int
    # Whether an asset that is not shown leads to the asset, so that the asset has at least these
    # partitions.
    is_partial: bool
    # None if only the assets were asked for.
    partitions: slicewise.PartitionSet | None

    @property
    def text(self) -> str:
        """The partitions as a selection."""
        return "" if self.partitions is None else self.partitions.text

    @property
    def is_direct(self) -> bool:
        """Whether one edge joins the asset and the start."""
        return self.distance == 1


@dataclass(frozen=True, slots=True)
class AssetWalk:
    """The nearest assets by id, in the order in which partitions follow; the distance of each; and
    the number of further assets, which are hidden.

    ``hidden_neighbours`` has the number of hidden assets that lead to an asset by one edge;
    ``partial`` has the assets that a hidden asset leads to, by any number of edges.
    """

    rows: dict[int, Asset]
    distances: Mapping[int, int]
    further: int
    hidden_neighbours: Mapping[int, int]
    partial: Set[int]


def walk_from(start: int, next_ids: Mapping[int, list[int]]) -> AssetWalk:
    """Return the walk along edges, given as the next ids by asset id: one statement."""
    distances = within_reach(start, next_ids, len(next_ids) + 1)
    nearest = set(list(distances)[:_MOST_ASSETS])
    hidden = distances.keys() - nearest
    ordered = _in_order(start, nearest, next_ids)
    declared = Asset.objects.declared().in_bulk(ordered)
    hidden_neighbours = Counter(
        next_id for pk in hidden for next_id in next_ids.get(pk, ()) if next_id in nearest
    )
    return AssetWalk(
        rows={pk: declared[pk] for pk in ordered if pk in declared},
        distances=distances,
        further=len(hidden),
        hidden_neighbours=hidden_neighbours,
        partial=_with_following(hidden_neighbours, nearest, next_ids),
    )


def edges_by_downstream(
    upstream_ids: Sequence[int], downstream_rows: Mapping[int, Asset]
) -> dict[int, list[AssetDependency]]:
    """Return the edges by which assets with these rows read other assets, by the id of the reader:
    one statement. The downstream assets of the edges are the given rows.
    """
    dependencies = AssetDependency.objects.filter(
        inlet=True, upstream__in=upstream_ids, downstream__in=downstream_rows.keys()
    )
    edges: dict[int, list[AssetDependency]] = defaultdict(list)
    for edge in dependencies.select_related("upstream__partition_definition").order_by("pk"):
        edge.downstream = downstream_rows[edge.downstream_id]
        edges[edge.downstream_id].append(edge)
    return edges


def sides_of(assets: Sequence[Asset]) -> dict[int | None, Side]:
    """Return the sides of edges by the ids of the assets' definitions: one statement."""
    ids = {asset.partition_definition_id for asset in assets}
    return Side.by_definition_id({pk for pk in ids if pk is not None})


def mapping_of_edge(edge: AssetDependency, sides: Mapping[int | None, Side]) -> str:
    """Return the mapping of an edge in words."""
    return mapping_words(
        edge.mapping,
        sides[edge.downstream.partition_definition_id],
        sides[edge.upstream.partition_definition_id],
    )


def _with_following(
    first_ids: Iterable[int], ids: Set[int], next_ids: Mapping[int, list[int]]
) -> set[int]:
    """Return the first assets, and the assets that edges lead to from these, among some assets."""
    reached: set[int] = set()
    stack = list(first_ids)
    while stack:
        asset_id = stack.pop()
        if asset_id in ids and asset_id not in reached:
            reached.add(asset_id)
            stack += next_ids.get(asset_id, ())
    return reached


def _in_order(start: int, ids: Set[int], next_ids: Mapping[int, list[int]]) -> list[int]:
    """Return the assets with these ids that edges lead to from the start, each after the assets
    before it on the way, except in a circle.
    """
    ordered: list[int] = []
    visited = {start}
    stack = [(start, iter(next_ids.get(start, ())))]
    while stack:
        asset_id, following = stack[-1]
        next_id = next(following, None)
        if next_id is None:
            stack.pop()
            ordered.append(asset_id)
        elif next_id in ids and next_id not in visited:
            visited.add(next_id)
            stack.append((next_id, iter(next_ids.get(next_id, ()))))
    return ordered[-2::-1]
