"""The graph of assets, and numbers of partitions for the graph."""

import re

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiView
from assets_app.queries.asset_graph import FARTHEST, AssetGraph, chosen_graph
from assets_app.queries.clock import database_now
from assets_app.queries.graph_json import graph_json
from assets_app.queries.graph_states import GraphStates, counted_assets, graph_states
from assets_app.queries.shared_graph_states import (
    SHARED_SECONDS,
    new_graph_states,
    shared_graph_states,
)
from assets_app.serializers.graph import AssetGraphSerializer, GraphStatesSerializer
from slicewise_server.web.api.etags import conditional
from slicewise_server.web.api.filtering import refuse_unknown_parameters
from slicewise_server.web.api.schema import IF_NONE_MATCH, problems
from slicewise_server.web.request_errors import InvalidRequest

_MAX_AGE = re.compile(r"\bmax-age=(?P<seconds>[0-9]{1,9})\b")
_PARAMETERS = [
    OpenApiParameter(
        "asset",
        str,
        description="Name of an asset: the graph has only this asset and the assets near this"
        " asset.",
    ),
    OpenApiParameter(
        "depth",
        {"type": "integer", "minimum": 1, "maximum": FARTHEST, "default": 1},
        description=f"With `asset`: the number of edges to follow upstream and downstream, 1 to"
        f" {FARTHEST}; 1 by default.",
    ),
    IF_NONE_MATCH,
]


class AssetGraphView(ApiView):
    """The graph of assets."""

    @extend_schema(
        operation_id="asset_graph_read",
        summary="Read the asset graph",
        parameters=_PARAMETERS,
        responses={200: AssetGraphSerializer} | problems(404),
    )
    def get(self, request: Request) -> Response:
        """Return the declared assets with the edges between the assets; 304 if the caller has
        the present state.
        """
        return conditional(request, graph_json(_graph(request)))


class AssetGraphStatesView(ApiView):
    """Numbers of partitions of the assets in the graph."""

    @extend_schema(
        operation_id="asset_graph_states",
        summary="Count partitions for the asset graph",
        parameters=_PARAMETERS,
        responses={200: GraphStatesSerializer} | problems(404),
    )
    def get(self, request: Request) -> Response:
        """Return the numbers of partitions by state, for each asset of the same graph; 304 if the
        caller has the present state. With `Cache-Control: max-age=5`, or a longer time, the numbers
        of the whole graph may be some seconds old.
        """
        states = _states(request)
        return conditional(request, {"assets": states.counts, "not_counted": states.not_counted})


def _states(request: Request) -> GraphStates:
    if request.query_params:
        asset_ids = [asset.pk for asset in _graph(request).assets]
        return graph_states(list(counted_assets().filter(pk__in=asset_ids)), database_now())
    max_age = _MAX_AGE.search(request.headers.get("Cache-Control", ""))
    if max_age is not None and int(max_age["seconds"]) >= SHARED_SECONDS:
        return shared_graph_states(database_now())
    return new_graph_states(database_now())


def _graph(request: Request) -> AssetGraph:
    refuse_unknown_parameters(request, {"asset", "depth"})
    name, depth = request.query_params.get("asset"), request.query_params.get("depth", "1")
    if name is None and "depth" in request.query_params:
        raise InvalidRequest({"depth": "Give an asset too: depth applies only to an asset."})
    # Any text that is no small number is out of bounds.
    return chosen_graph(name, int(depth) if depth.isdecimal() and len(depth) < 4 else 0)
