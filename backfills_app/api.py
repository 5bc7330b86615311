"""Backfills: planning, creating, watching and stopping them."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiList, ApiView, signed_in
from accounts_app.api.etags import conditional
from accounts_app.api.idempotency import once
from accounts_app.api.schema import IDEMPOTENCY_KEY, IF_NONE_MATCH, problems
from backfills_app.models import Backfill, BackfillPartition, BackfillState
from backfills_app.serializers import (
    BackfillDetailSerializer,
    BackfillPartitionSerializer,
    BackfillPlanSerializer,
    BackfillRequestSerializer,
    BackfillSerializer,
)
from backfills_app.services import (
    BackfillRequest,
    cancel_backfill,
    check_backfill,
    create_backfill,
    request_from_text,
)

REQUEST_EXAMPLE = OpenApiExample(
    "A year of days",
    {
        "asset": "raw_flights",
        "start": "2013-01-01",
        "end": "2013-12-31",
        "description": "Flights of 2013",
        "max_active_runs": 3,
        "strategy": 30,
    },
    request_only=True,
)
PLAN_EXAMPLE = OpenApiExample(
    "A plan",
    {
        "total": 365,
        "to_make": 364,
        "runs": 13,
        "first_key": "2013-01-01",
        "last_key": "2013-12-31",
        "first_label": "2013-01-01",
        "last_label": "2013-12-31",
        "selection": "2013-01-01..2013-12-31",
        "materialized": 1,
        "failed": 0,
        "in_flight": 0,
        "start_date": "2013-01-01T00:00:00Z",
        "end_date": "2014-01-01T00:00:00Z",
        "strategy": 30,
    },
    response_only=True,
    status_codes=["200"],
)


class BackfillFilter(django_filters.FilterSet):
    """What the list of backfills can be narrowed by."""

    asset = django_filters.CharFilter(field_name="asset__name")
    state = django_filters.MultipleChoiceFilter(choices=BackfillState.choices)
    submitted_by = django_filters.CharFilter(field_name="submitted_by__username")
    search = django_filters.CharFilter(field_name="description", lookup_expr="icontains")


class BackfillPartitionFilter(django_filters.FilterSet):
    """What the partitions of a backfill can be narrowed by."""

    asset = django_filters.CharFilter(field_name="backfill_asset__asset__name")
    state = django_filters.MultipleChoiceFilter(choices=BackfillPartition.State.choices)


def backfill_numbered(pk: int) -> Backfill:
    """The backfill of this number; Http404 with a sentence without one."""
    backfill = Backfill.objects.listed().filter(pk=pk).first()
    if backfill is None:
        raise Http404(f"There is no backfill {pk}.")
    return backfill


def read_request(data: Any) -> BackfillRequest:
    """The request that a JSON body makes. Raises InvalidRequest or DRF's ValidationError."""
    asked = BackfillRequestSerializer(data=data)
    asked.is_valid(raise_exception=True)
    fields = dict(asked.validated_data)
    return request_from_text(fields.pop("asset"), **fields)


class BackfillsView(ApiList[Backfill]):
    """All backfills."""

    queryset = Backfill.objects.listed()
    serializer_class = BackfillSerializer
    filterset_class = BackfillFilter

    @extend_schema(
        operation_id="backfills_list",
        summary="List backfills",
        responses={200: BackfillSerializer(many=True)} | problems(400, 401),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first."""
        return self.list(request, *args, **kwargs)

    @extend_schema(
        operation_id="backfills_create",
        summary="Create a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=BackfillRequestSerializer,
        responses={201: BackfillDetailSerializer} | problems(400, 401, 403, 409, 413, 422),
        examples=[REQUEST_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """It is there at once, and expanded into its partitions by a worker."""

        def act() -> Response:
            backfill = create_backfill(read_request(request.data), user=signed_in(request))
            detail = BackfillDetailSerializer(backfill_numbered(backfill.pk)).data
            address = reverse("api:backfill", args=[backfill.pk])
            return Response(detail, status=201, headers={"Location": address})

        return once(request, act)


class BackfillPreviewView(ApiView):
    """What a backfill would do."""

    @extend_schema(
        operation_id="backfills_preview",
        summary="Preview a backfill",
        request=BackfillRequestSerializer,
        responses={200: BackfillPlanSerializer} | problems(400, 401, 403, 409, 413),
        examples=[REQUEST_EXAMPLE, PLAN_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """The same checks as creation; nothing is written."""
        plan = check_backfill(read_request(request.data), user=signed_in(request))
        return Response(BackfillPlanSerializer(plan).data)


class BackfillView(ApiView):
    """One backfill."""

    @extend_schema(
        operation_id="backfills_read",
        summary="Read a backfill",
        parameters=[IF_NONE_MATCH],
        responses={200: BackfillDetailSerializer, 304: None} | problems(401, 404),
    )
    def get(self, request: Request, pk: int) -> Response:
        """With its counts and the code as it was frozen at submission."""
        return conditional(request, BackfillDetailSerializer(backfill_numbered(pk)).data)


class BackfillPartitionsView(ApiList[BackfillPartition]):
    """The partitions of a backfill."""

    queryset = BackfillPartition.objects.none()
    serializer_class = BackfillPartitionSerializer
    filterset_class = BackfillPartitionFilter
    page_order = "id"

    def get_queryset(self) -> QuerySet[BackfillPartition]:
        if getattr(self, "swagger_fake_view", False):
            return self.queryset
        backfill = backfill_numbered(self.kwargs["pk"])
        partitions = BackfillPartition.objects.filter(backfill_asset__backfill=backfill)
        with_rule = partitions.select_related("backfill_asset__asset__partition_definition")
        return with_rule.defer("backfill_asset__asset__partition_definition__spec")

    @extend_schema(
        operation_id="backfills_partitions",
        summary="List partitions of a backfill",
        responses={200: BackfillPartitionSerializer(many=True)} | problems(400, 401, 404),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """In the order in which they are made; while it is being created, those that are known."""
        return self.list(request, *args, **kwargs)


class BackfillCancelView(ApiView):
    """Stopping a backfill."""

    @extend_schema(
        operation_id="backfills_cancel",
        summary="Cancel a backfill",
        request=None,
        responses={200: BackfillDetailSerializer} | problems(401, 403, 404, 409),
    )
    def post(self, request: Request, pk: int) -> Response:
        """What is queued ends at once; `canceling` until all that runs has stopped."""
        cancel_backfill(backfill_numbered(pk), user=signed_in(request))
        return Response(BackfillDetailSerializer(backfill_numbered(pk)).data)
