"""Find the circles of a graph: sets of nodes in which each node leads to all other nodes."""

from collections.abc import Iterable, Mapping

Graph = Mapping[str, Iterable[str]]


def circles(graph: Graph) -> list[set[str]]:
    """Return the circles of two nodes or more, the largest first.

    A circle is a strongly connected component (Kosaraju: the nodes of the graph in the order in
    which a walk leaves the nodes, last first, each with the nodes that the reversed graph reaches
    from there).
    """
    nodes = sorted({*graph, *(target for targets in graph.values() for target in targets)})
    reversed_graph: dict[str, list[str]] = {node: [] for node in nodes}
    for node in graph:
        for target in graph[node]:
            reversed_graph[target].append(node)
    order: list[str] = []
    visited: set[str] = set()
    for node in nodes:
        order.extend(_left_nodes(graph, node, visited))
    visited.clear()
    components = [set(_left_nodes(reversed_graph, node, visited)) for node in reversed(order)]
    return sorted((c for c in components if len(c) > 1), key=lambda c: (-len(c), min(c)))


def _left_nodes(graph: Graph, start: str, visited: set[str]) -> list[str]:
    """Walk from `start` over nodes not in `visited`; return the nodes in the order of leaving."""
    if start in visited:
        return []
    visited.add(start)
    order: list[str] = []
    path = [(start, iter(sorted(graph.get(start, ()))))]
    while path:
        node, targets = path[-1]
        target = next((target for target in targets if target not in visited), None)
        if target is None:
            path.pop()
            order.append(node)
        else:
            visited.add(target)
            path.append((target, iter(sorted(graph.get(target, ())))))
    return order
