"""Circles of a graph, compared with all pairs of nodes that reach each other."""

from hypothesis import given
from hypothesis import strategies as st

from tests.house.circles import circles

NODES = st.sampled_from("abcdefg")


def reachable_nodes(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return all nodes that a walk of one step or more from `start` comes to."""
    nodes: set[str] = set()
    ahead = set(graph.get(start, ()))
    while ahead - nodes:
        nodes |= ahead
        ahead = {target for node in nodes for target in graph.get(node, ())}
    return nodes


@given(st.dictionaries(NODES, st.sets(NODES)))
def test_a_circle_holds_the_nodes_that_reach_each_other(graph: dict[str, set[str]]) -> None:
    expected = {
        frozenset(
            {node, *(n for n in reachable_nodes(graph, node) if node in reachable_nodes(graph, n))}
        )
        for node in graph
    }
    circle_sets = circles(graph)
    assert {frozenset(circle) for circle in circle_sets} == {c for c in expected if len(c) > 1}
    assert [len(circle) for circle in circle_sets] == sorted(map(len, circle_sets), reverse=True)
