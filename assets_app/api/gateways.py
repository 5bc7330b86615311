"""Gateways, the workers that execute runs."""

from typing import Any

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiList
from assets_app.models import Gateway, Queue
from assets_app.models.gateways import GatewayState
from assets_app.queries.clock import database_now
from assets_app.queries.gateways import GatewayStatus, gateway_statuses
from slicewise_server.web.api.filtering import WordFilter


class GatewaySerializer(serializers.Serializer[Any]):
    """A worker, with state, slots and runs."""

    name = serializers.CharField(source="gateway.name")
    host = serializers.CharField(source="gateway.host")
    process_id = serializers.IntegerField(source="gateway.process_id")
    queue = serializers.ChoiceField(source="gateway.queue", choices=Queue.choices)
    state = serializers.ChoiceField(
        choices=GatewayState.choices,
        help_text="`draining`: accepts no more runs; `stopped`: was shut down; `lost`: sends no"
        " heartbeat since `last_seen`.",
    )
    slots = serializers.IntegerField(source="gateway.slots")
    used = serializers.IntegerField()
    free = serializers.IntegerField()
    runs = serializers.SerializerMethodField()
    started_at = serializers.DateTimeField(source="gateway.started_at")
    last_seen = serializers.DateTimeField(source="gateway.last_seen")
    spark_away_since = serializers.DateTimeField(
        source="gateway.spark_away_since",
        allow_null=True,
        help_text="Time since which the Spark Connect server of the gateway does not answer;"
        " null if the server answers. Meanwhile the gateway starts only runs with an"
        " own Spark application.",
    )

    def get_runs(self, status: GatewayStatus) -> list[int]:
        return [attempt.run_id for attempt in status.attempts]


class GatewayFilter(django_filters.FilterSet):
    """Filters of the list of gateways."""

    queue = WordFilter(choices=Queue.choices)


class GatewaysView(ApiList[Gateway]):
    """The workers that execute runs."""

    queryset = Gateway.objects.all()
    serializer_class = GatewaySerializer
    filterset_class = GatewayFilter
    page_order = "name"

    @extend_schema(
        operation_id="gateways_list",
        summary="List gateways",
        responses={200: GatewaySerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List all gateways that have ever registered, by name."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        statuses = gateway_statuses(page, database_now())
        return self.get_paginated_response(GatewaySerializer(statuses, many=True).data)
