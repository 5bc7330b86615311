"""Numbers of partitions of the whole graph, counted once in some seconds for all open pages.

The counts read a row for each asset, day and state. Each open page asks again and again, and a page
that asks for the first time gets new numbers: the viewer may have changed something just before.
"""

from dataclasses import asdict
from datetime import datetime

from django.core.cache import cache

from assets_app.queries.graph_states import GraphStates, counted_assets, graph_states
from slicewise_server.web.cache_keys import of_database

SHARED_SECONDS = 5
"""The time for which pages that ask again share the numbers."""
# Longer than a count may take: the numbers before it are shared meanwhile.
_KEPT_SECONDS = 30
_STATES, _IS_COUNTED = "graph-states", "graph-states-counted"


def new_graph_states(now: datetime) -> GraphStates:
    """Count the partitions of all assets by state, and share the numbers."""
    states = graph_states(list(counted_assets()), now)
    cache.set(of_database(_STATES), asdict(states), _KEPT_SECONDS)
    return states


def shared_graph_states(now: datetime) -> GraphStates:
    """Return numbers that were counted some seconds ago, or count: one caller in SHARED_SECONDS
    counts, and the others get the numbers before.
    """
    is_counted = not cache.add(of_database(_IS_COUNTED), 1, SHARED_SECONDS)
    shared = cache.get(of_database(_STATES)) if is_counted else None
    return GraphStates(**shared) if shared else new_graph_states(now)
