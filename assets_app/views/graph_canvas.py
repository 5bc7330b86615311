"""The values of the canvas on which a script draws a graph."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from assets_app.models import Asset
from assets_app.queries.asset_graph import FARTHEST
from assets_app.queries.graph_states import GRAPH_LOOKS, NOTHING_DUE

# So many edges upstream and downstream the page of an asset shows.
NEAR = 2


def whole_graph() -> dict[str, Any]:
    """Return the values of the canvas of all assets."""
    return _canvas("")


def neighbourhood_graph(asset: Asset) -> dict[str, Any]:
    """Return the values of the canvas of the assets near an asset."""
    return _canvas("?" + urlencode({"asset": asset.name, "depth": NEAR}))


def downstream_graph(assets: Sequence[Asset]) -> dict[str, Any]:
    """Return the values of the canvas of some assets with all their downstream assets, on which a
    person chooses downstream assets.
    """
    names = [asset.name for asset in assets]
    single = "?" + urlencode({"asset": names[0], "depth": FARTHEST}) if len(names) == 1 else ""
    return _canvas(single) | {"asset": assets[0], "starts": json.dumps(names)}


def _canvas(query: str) -> dict[str, Any]:
    return {
        "graph_url": reverse("api:asset-graph") + query,
        "states_url": reverse("api:asset-graph-states") + query,
        "looks": [*GRAPH_LOOKS, NOTHING_DUE],
    }
