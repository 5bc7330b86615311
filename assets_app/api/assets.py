"""Assets, partitions of assets, and requests to materialize partitions."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiList, ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.api.counts import expected_count
from assets_app.api.partition_pages import STATES, PartitionQuery, partition_page
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, RunGroup
from assets_app.queries.clock import database_now
from assets_app.queries.counts import StateCounts
from assets_app.queries.lookups import asset_named
from assets_app.queries.overdue import late_counts, overdue_by_asset
from assets_app.serializers import (
    AssetDetailSerializer,
    AssetSerializer,
    MaterializeSerializer,
    PartitionSerializer,
    RequestSerializer,
)
from slicewise_server.web.api.filtering import YesNoFilter, refuse_unknown_parameters
from slicewise_server.web.api.pages import PARAMETERS, page_response, read_cursor, read_page_size
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, NOT_FOUND_EXAMPLE, page_of, problems

RUNS_NAMED = 100


class AssetFilter(django_filters.FilterSet):
    """Filters of the list of assets."""

    search = django_filters.CharFilter(method="matching", label="Part of the name or description")
    bundle = django_filters.CharFilter(field_name="bundle__name")
    group = django_filters.CharFilter()
    kind = django_filters.CharFilter()
    owner = django_filters.CharFilter(field_name="owners", method="holding")
    tag = django_filters.CharFilter(field_name="tags", method="holding")
    paused = YesNoFilter()
    overdue = YesNoFilter(method="being_overdue", label="Whether a partition is overdue")

    def being_overdue(self, assets: QuerySet[Asset], _: str, is_overdue: bool) -> QuerySet[Asset]:
        overdue = assets.filter(pk__in=list(overdue_by_asset(database_now())))
        return overdue if is_overdue else assets.exclude(pk__in=overdue.values("pk"))

    def matching(self, assets: QuerySet[Asset], _: str, text: str) -> QuerySet[Asset]:
        return assets.filter(Q(name__icontains=text) | Q(description__icontains=text))

    def holding(self, assets: QuerySet[Asset], field: str, text: str) -> QuerySet[Asset]:
        return assets.filter(**{f"{field}__contains": [text]})


def asset_detail(asset: Asset) -> dict[str, Any]:
    """Return an asset as the API shows a single asset."""
    now = database_now()
    context = {
        "counts": StateCounts([asset]),
        "late": late_counts(now, [asset]),
        "expected": expected_count(asset, now=now),
    }
    return AssetDetailSerializer(asset, context=context).data


def request_detail(group: RunGroup) -> dict[str, Any]:
    """Return the runs of a request to materialize, as the API shows the request."""
    runs = list(group.runs.order_by("id").values_list("id", "partition_count"))
    detail = {
        "group": group.pk,
        "label": group.label,
        "run_count": len(runs),
        "partition_count": sum(count for _, count in runs),
        "runs": [run for run, _ in runs[:RUNS_NAMED]],
        "runs_url": f"{reverse('api:runs')}?group={group.pk}",
        "in_flight": group.in_flight,
        "earlier_missing": group.earlier_missing,
    }
    return RequestSerializer(detail).data


class AssetsView(ApiList[Asset]):
    """The list of assets."""

    queryset = Asset.objects.declared().select_related("bundle")
    serializer_class = AssetSerializer
    filterset_class = AssetFilter
    page_order = "name"

    @extend_schema(
        operation_id="assets_list",
        summary="List assets",
        responses={200: AssetSerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the assets that a loaded file declares now, by name."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        context = {"counts": StateCounts(page), "late": late_counts(database_now(), page)}
        return self.get_paginated_response(AssetSerializer(page, many=True, context=context).data)


class AssetView(ApiView):
    """One asset."""

    @extend_schema(
        operation_id="assets_read",
        summary="Read an asset",
        responses={200: AssetDetailSerializer},
        examples=[NOT_FOUND_EXAMPLE],
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the asset with columns, neighbours, and the number of expected partitions."""
        return Response(asset_detail(asset_named(name)))


class PartitionsView(ApiView):
    """The partitions of an asset."""

    @extend_schema(
        operation_id="assets_partitions",
        summary="List partitions of an asset",
        parameters=[
            OpenApiParameter(
                "selection",
                str,
                description="Text of the selection grammar: `2024-01..2024-03`, `date=2024"
                " airport=JFK,L*`. Without a selection: all partitions whose window has"
                " ended. Partitions on record that the definition no longer has are listed by"
                " `partitions/orphans/`.",
                examples=[OpenApiExample("A month of days", "2013-01")],
            ),
            OpenApiParameter(
                "state",
                str,
                enum=STATES,
                description="`overdue`: not materialized in time, whatever the last run did;"
                " `stale`: materialized, with a newer input.",
            ),
            *(
                OpenApiParameter(field["name"], field["schema"], description=field["description"])
                for field in PARAMETERS
            ),
        ],
        responses={200: page_of(PartitionSerializer)},
    )
    def get(self, request: Request, name: str) -> Response:
        """List partitions in window order, also partitions without any record. With `state` a page
        may hold fewer results than requested, even none, while `next` still leads to the next page.
        """
        refuse_unknown_parameters(request, {"selection", "state", "cursor", "page_size"})
        query = PartitionQuery(
            asset=asset_named(name),
            now=database_now(),
            selection=request.query_params.get("selection", ""),
            state=request.query_params.get("state", ""),
            position=read_cursor(request),
            size=read_page_size(request),
        )
        lines, position = partition_page(query)
        return page_response(request, PartitionSerializer(lines, many=True).data, position)


class MaterializeView(ApiView):
    """Request to materialize partitions of an asset."""

    @extend_schema(
        operation_id="assets_materialize",
        summary="Materialize partitions",
        parameters=[IDEMPOTENCY_KEY],
        request=MaterializeSerializer,
        responses={201: RequestSerializer} | problems(409),
        examples=[
            OpenApiExample(
                "Three days", {"selection": "2013-01-01..2013-01-03"}, request_only=True
            ),
            OpenApiExample("An asset that is not partitioned", {}, request_only=True),
            OpenApiExample(
                "Runs",
                {
                    "group": 7,
                    "label": "raw_flights 2013-01-01..2013-01-03",
                    "run_count": 3,
                    "partition_count": 3,
                    "runs": [12, 13, 14],
                    "runs_url": "/api/v1/runs/?group=7",
                    "in_flight": [],
                    "earlier_missing": [],
                },
                response_only=True,
                status_codes=["201"],
            ),
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Materialize partitions; a partition that is materialized already is re-run, with history
        kept. Partitions that another run is materializing are left out and named; if no partition
        remains, the answer is 409.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.MATERIALIZE)
        body = MaterializeSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            materialize_request = MaterializeRequest(asset=asset, **body.validated_data)
            detail = request_detail(materialize(materialize_request, user=signed_in(request)))
            return Response(detail, status=201, headers={"Location": detail["runs_url"]})

        return execute_once(request, act)
