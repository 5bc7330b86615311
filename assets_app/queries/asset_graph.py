"""The graph of declared assets: assets, and edges between assets, with the mapping in words."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from assets_app.models import Asset, AssetDependency
from assets_app.queries.lookups import asset_named
from assets_app.queries.mapping_words import Side, mapping_words
from slicewise_server.web.request_errors import InvalidRequest

FARTHEST = 100


@dataclass(frozen=True, slots=True)
class GraphAsset:
    """One asset of the graph."""

    pk: int
    name: str
    group: str
    paused: bool
    is_external: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """The way in which one asset depends on another one: inlet, trigger, and mapping in words."""

    inlet: bool
    scheduling: bool
    mapping: str

    @property
    def words(self) -> str:
        """The relation in words: ``same partition, trigger``."""
        if not self.inlet:
            return "trigger only"
        return f"{self.mapping}, trigger" if self.scheduling else self.mapping


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge from an upstream asset to a downstream asset, by the ids of the assets."""

    upstream: int
    downstream: int
    relation: Relation


@dataclass(frozen=True, slots=True)
class AssetGraph:
    """Assets by name, and the edges between these assets."""

    assets: list[GraphAsset]
    edges: list[GraphEdge]


def declared_graph() -> AssetGraph:
    """Return the graph of all declared assets: three statements, however large the graph is."""
    return _graph(None)


def chosen_graph(name: str | None, depth: int) -> AssetGraph:
    """Return the graph of the assets near the asset of this name; None stands for all assets.

    Raises Http404 for an unknown name, and InvalidRequest for a depth that is too small or large.
    """
    if not 1 <= depth <= FARTHEST:
        raise InvalidRequest({"depth": f"A whole number from 1 to {FARTHEST}."})
    return declared_graph() if name is None else neighbourhood(asset_named(name), depth)


def neighbourhood(asset: Asset, depth: int) -> AssetGraph:
    """Return the graph of an asset with the assets that at most ``depth`` edges lead to, upstream
    or downstream: four statements.
    """
    pairs = edge_ids()
    upstream_ids, downstream_ids = by_end(pairs)
    near = within_reach(asset.pk, upstream_ids, depth) | within_reach(
        asset.pk, downstream_ids, depth
    )
    return _graph({asset.pk, *near})


def edge_ids(*, only_inlets: bool = False) -> list[tuple[int, int]]:
    """Return the ids of the upstream and the downstream asset of each edge between two declared
    assets.
    """
    edges = AssetDependency.objects.filter(upstream__active=True, downstream__active=True)
    if only_inlets:
        edges = edges.filter(inlet=True)
    return list(edges.order_by("pk").values_list("upstream_id", "downstream_id"))


def within_reach(start: int, next_ids: Mapping[int, list[int]], depth: int) -> dict[int, int]:
    """Return the assets that edges lead to, each with the number of edges on the shortest way,
    without the start.
    """
    distances = {start: 0}
    border = [start]
    for distance in range(1, depth + 1):
        border = list(
            dict.fromkeys(
                neighbour
                for asset_id in border
                for neighbour in next_ids.get(asset_id, ())
                if neighbour not in distances
            )
        )
        if not border:
            break
        distances |= dict.fromkeys(border, distance)
    del distances[start]
    return distances


def reachable_ids(asset: Asset, direction: str = "") -> set[int]:
    """Return the asset with all assets upstream, downstream, or both: one statement."""
    pairs = edge_ids()
    upstream_ids, downstream_ids = by_end(pairs)
    ids = {asset.pk}
    if direction != "downstream":
        ids |= within_reach(asset.pk, upstream_ids, len(pairs) + 1).keys()
    if direction != "upstream":
        ids |= within_reach(asset.pk, downstream_ids, len(pairs) + 1).keys()
    return ids


@dataclass(frozen=True, slots=True)
class ReachCounts:
    """Numbers of assets upstream and downstream of an asset: direct ones, and all."""

    upstream: int
    all_upstream: int
    downstream: int
    all_downstream: int


def reach_counts(asset: Asset) -> ReachCounts:
    """Return the numbers of assets upstream and downstream of an asset: one statement."""
    pairs = edge_ids()
    upstream_ids, downstream_ids = by_end(pairs)
    upstream = within_reach(asset.pk, upstream_ids, len(pairs) + 1)
    downstream = within_reach(asset.pk, downstream_ids, len(pairs) + 1)
    return ReachCounts(
        upstream=_direct(upstream.values()),
        all_upstream=len(upstream),
        downstream=_direct(downstream.values()),
        all_downstream=len(downstream),
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The asset at the other end of an edge, and the way in which one depends on the other."""

    name: str
    relation: Relation


def neighbours_of(
    assets: Collection[Asset],
) -> tuple[dict[int, list[Neighbour]], dict[int, list[Neighbour]]]:
    """Return (upstream neighbours, downstream neighbours) by the ids of the assets, by name: two
    statements. An asset that is no longer declared reads no other asset.
    """
    ids = {asset.pk for asset in assets}
    edges = AssetDependency.objects.filter(
        Q(downstream__in=ids) | Q(upstream__in=ids, downstream__active=True)
    )
    rows = list(edges.select_related("upstream", "downstream").order_by("pk"))
    sides = _sides_of_edges(rows)
    upstream: dict[int, list[Neighbour]] = defaultdict(list)
    downstream: dict[int, list[Neighbour]] = defaultdict(list)
    for edge in rows:
        words = mapping_words(
            edge.mapping,
            sides[edge.downstream.partition_definition_id],
            sides[edge.upstream.partition_definition_id],
        )
        relation = Relation(edge.inlet, edge.scheduling, words)
        if edge.downstream_id in ids:
            upstream[edge.downstream_id].append(Neighbour(edge.upstream.name, relation))
        if edge.upstream_id in ids and edge.downstream.active:
            downstream[edge.upstream_id].append(Neighbour(edge.downstream.name, relation))
    for neighbours in (*upstream.values(), *downstream.values()):
        neighbours.sort(key=lambda neighbour: neighbour.name)
    return upstream, downstream


def _sides_of_edges(edges: Iterable[AssetDependency]) -> dict[int | None, Side]:
    ends = [end for edge in edges for end in (edge.upstream, edge.downstream)]
    ids = {end.partition_definition_id for end in ends}
    return Side.by_definition_id({pk for pk in ids if pk is not None})


def _direct(distances: Iterable[int]) -> int:
    return sum(distance == 1 for distance in distances)


def by_end(
    pairs: Iterable[tuple[int, int]],
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return (upstream ids by downstream id, downstream ids by upstream id)."""
    upstream_ids: dict[int, list[int]] = defaultdict(list)
    downstream_ids: dict[int, list[int]] = defaultdict(list)
    for upstream, downstream in pairs:
        upstream_ids[downstream].append(upstream)
        downstream_ids[upstream].append(downstream)
    return upstream_ids, downstream_ids


def _graph(ids: Collection[int] | None) -> AssetGraph:
    """Return the graph of the declared assets with these ids; None stands for all."""
    rows = Asset.objects.filter(active=True)
    edges = AssetDependency.objects.filter(upstream__active=True, downstream__active=True)
    if ids is not None:
        rows = rows.filter(pk__in=ids)
        edges = edges.filter(upstream__in=ids, downstream__in=ids)
    columns = ("pk", "name", "group", "paused", "producer_id", "partition_definition_id")
    asset_rows = list(rows.order_by("name").values_list(*columns))
    definition_ids = {pk: definition_id for pk, *_, definition_id in asset_rows}
    edge_rows = edges.order_by("pk").values_list(
        "upstream_id", "downstream_id", "inlet", "scheduling", "mapping"
    )
    sides = Side.by_definition_id({pk for pk in definition_ids.values() if pk is not None})
    return AssetGraph(
        [
            GraphAsset(pk, name, group, paused, producer_id is None)
            for pk, name, group, paused, producer_id, _ in asset_rows
        ],
        [
            GraphEdge(
                upstream,
                downstream,
                Relation(
                    inlet,
                    scheduling,
                    mapping_words(
                        mapping,
                        sides[definition_ids[downstream]],
                        sides[definition_ids[upstream]],
                    ),
                ),
            )
            for upstream, downstream, inlet, scheduling, mapping in edge_rows
            if upstream in definition_ids and downstream in definition_ids
        ],
    )
