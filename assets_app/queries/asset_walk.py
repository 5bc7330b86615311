"""The assets that edges lead to from one asset, in one direction, for pages that follow its
partitions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import slicewise
from assets_app.models import Asset
from assets_app.queries.asset_graph import within_reach

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
    """The nearest assets: all ids, and the declared assets by id, both in the order in which
    partitions follow; the distance of each; and the number of further assets, which are hidden.

    ``hidden_neighbours`` has the number of hidden assets that lead to an asset by one edge;
    ``partial`` has the assets that a hidden asset leads to, by any number of edges.
    """

    ids: list[int]
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
        ids=ordered,
        rows={pk: declared[pk] for pk in ordered if pk in declared},
        distances=distances,
        further=len(hidden),
        hidden_neighbours=hidden_neighbours,
        partial=_with_following(hidden_neighbours, nearest, next_ids),
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
