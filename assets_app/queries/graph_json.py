"""The asset graph as plain JSON, in a form that stays small for thousands of assets."""

from typing import Any

from assets_app.queries.asset_graph import AssetGraph
from assets_app.queries.graph_folds import fold


def graph_json(graph: AssetGraph) -> dict[str, Any]:
    """Return the graph as API and commands show the graph.

    The values are plain: a serializer would take a second for thousands of assets.
    """
    positions = {asset.pk: position for position, asset in enumerate(graph.assets)}
    relations = list(dict.fromkeys(edge.relation for edge in graph.edges))
    relation_positions = {relation: position for position, relation in enumerate(relations)}
    edges = [
        (positions[edge.upstream], positions[edge.downstream], relation_positions[edge.relation])
        for edge in graph.edges
    ]
    folding = fold(
        [asset.name for asset in graph.assets],
        [asset.group for asset in graph.assets],
        [(upstream, downstream) for upstream, downstream, _ in edges],
    )
    return {
        "assets": [
            {
                "name": asset.name,
                "group": asset.group,
                "paused": asset.paused,
                "external": asset.is_external,
                "fold": number,
            }
            for asset, number in zip(graph.assets, folding.fold_of, strict=True)
        ],
        "edges": edges,
        "relations": [
            {
                "inlet": relation.inlet,
                "scheduling": relation.scheduling,
                "mapping": relation.mapping,
            }
            for relation in relations
        ],
        "folds": [
            {"name": node.label, "kind": node.kind, "outer": node.parent, "size": node.size}
            for node in folding.folds
        ],
    }
