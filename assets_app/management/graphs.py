"""``assets graph``: prints the edges between assets."""

from accounts_app.management.command import SlicewiseCommand
from assets_app.queries.asset_graph import chosen_graph
from assets_app.queries.graph_json import graph_json


def print_graph(command: SlicewiseCommand, asset: str | None, depth: int) -> None:
    """Print the graph of all assets, or of the assets near an asset: edges by name."""
    graph = chosen_graph(asset, depth)
    if command.json:
        command.print_json(graph_json(graph))
        return
    names = {node.pk: node.name for node in graph.assets}
    edges = sorted(
        (names[edge.upstream], names[edge.downstream], edge.relation.words) for edge in graph.edges
    )
    command.print_table(("upstream", "downstream", "needs"), edges)
