"""The API of backfills: preview, create, read, change and delete."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiList, ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from backfills_app.api.examples import (
    CHANGE_EXAMPLE,
    OUTCOME_EXAMPLE,
    PLAN_EXAMPLE,
    REQUEST_EXAMPLE,
    SEVERAL_EXAMPLE,
    UPSTREAM_EXAMPLE,
    WITH_DOWNSTREAM_EXAMPLE,
)
from backfills_app.models import Backfill, BackfillState
from backfills_app.queries.lookups import backfill_numbered
from backfills_app.serializers import (
    BackfillDetailSerializer,
    BackfillPlanSerializer,
    BackfillRequestSerializer,
    BackfillSerializer,
    ChangeSerializer,
    OutcomeSerializer,
    outcome_of,
)
from backfills_app.services import (
    BackfillRequest,
    change_backfill,
    check_backfill,
    delete_backfill,
    request_backfill,
    request_from_text,
    require_control,
)
from slicewise_server.web.api.etags import conditional
from slicewise_server.web.api.filtering import WordsFilter, YesNoFilter
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, IF_NONE_MATCH, problems


class BackfillFilter(django_filters.FilterSet):
    """The filters of the list of backfills."""

    asset = django_filters.CharFilter(method="chosen", label="The name of a chosen asset")
    state = WordsFilter(choices=BackfillState.choices)
    submitted_by = django_filters.CharFilter(field_name="submitted_by__username")
    search = django_filters.CharFilter(method="named_or_described")
    submitted_after = django_filters.IsoDateTimeFilter("submitted_at", lookup_expr="gte")
    submitted_before = django_filters.IsoDateTimeFilter("submitted_at", lookup_expr="lt")
    deleted = YesNoFilter(field_name="deleted")

    @property
    def qs(self) -> QuerySet[Backfill]:
        """The filtered backfills, without deleted ones unless the request asks for deleted ones."""
        rows: QuerySet[Backfill] = super().qs
        deleted_choice = self.form.cleaned_data.get("deleted") if self.is_bound else ""
        return rows.filter(deleted=False) if deleted_choice in ("", None) else rows

    def chosen(self, rows: Any, name: str, text: str) -> Any:
        """Filter by the name of a chosen asset."""
        return rows.choosing(text)

    def named_or_described(self, rows: Any, name: str, text: str) -> Any:
        """Filter by a text in the name or the description."""
        return rows.filter(Q(name__icontains=text) | Q(description__icontains=text))


def read_request(data: Any) -> BackfillRequest:
    """Read the request of a JSON body. Raises InvalidRequest or DRF's ValidationError."""
    serializer = BackfillRequestSerializer(data=data)
    serializer.is_valid(raise_exception=True)
    fields = dict(serializer.validated_data)
    return request_from_text(**fields)


def detail_of(pk: int) -> Any:
    """Return the present state of a backfill as JSON."""
    return BackfillDetailSerializer(backfill_numbered(pk)).data


def created(backfill: Backfill) -> Response:
    """Return the answer to a request that created a backfill."""
    address = reverse("api:backfill", args=[backfill.pk])
    return Response(detail_of(backfill.pk), status=201, headers={"Location": address})


class BackfillsView(ApiList[Backfill]):
    """The list of backfills."""

    queryset = Backfill.objects.with_code_versions()
    serializer_class = BackfillSerializer
    filterset_class = BackfillFilter

    @extend_schema(
        operation_id="backfills_list",
        summary="List backfills",
        responses={200: BackfillSerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List backfills, newest first."""
        return self.list(request, *args, **kwargs)

    @extend_schema(
        operation_id="backfills_create",
        summary="Create a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=BackfillRequestSerializer,
        responses={201: BackfillDetailSerializer} | problems(409),
        examples=[REQUEST_EXAMPLE, WITH_DOWNSTREAM_EXAMPLE, SEVERAL_EXAMPLE, UPSTREAM_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Create a backfill at once; a worker expands the backfill into its partitions
        afterwards.
        """

        user = signed_in(request)
        policy.require_for_some(user, Action.BACKFILL)

        def act() -> Response:
            return created(request_backfill(read_request(request.data), user=user))

        return execute_once(request, act)


class BackfillPreviewView(ApiView):
    """The preview of a backfill."""

    @extend_schema(
        operation_id="backfills_preview",
        summary="Preview a backfill",
        request=BackfillRequestSerializer,
        responses={200: BackfillPlanSerializer},
        examples=[REQUEST_EXAMPLE, PLAN_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Check a request as creation would, and return the plan; nothing is written.

        If the plan has `to_materialize` 0, creation refuses the request (409), unless the request
        is large (more than 5,000 partitions, upstream included, or more than 10,000 upstream
        partitions that these need), or starts later and may find partitions to run.
        """
        user = signed_in(request)
        policy.require_for_some(user, Action.BACKFILL)
        plan = check_backfill(read_request(request.data), user=user)
        return Response(BackfillPlanSerializer(plan).data)


class BackfillView(ApiView):
    """One backfill."""

    @extend_schema(
        operation_id="backfills_read",
        summary="Read a backfill",
        parameters=[IF_NONE_MATCH],
        responses={200: BackfillDetailSerializer},
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return a backfill with its counts, its progress, and the code as frozen at submission. A
        deleted backfill can still be read.
        """
        return conditional(request, detail_of(pk))

    @extend_schema(
        operation_id="backfills_change",
        summary="Change a backfill",
        request=ChangeSerializer,
        responses={200: BackfillDetailSerializer} | problems(409),
        examples=[CHANGE_EXAMPLE],
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a backfill from now on: waiting partitions follow the new settings, and runs that
        have begun go on; a lower limit or another order withdraws queued runs. Of an ended backfill
        only the description can be changed.
        """
        backfill, user = backfill_numbered(pk), signed_in(request)
        require_control(backfill, Action.BACKFILL, user)
        serializer = ChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        change_backfill(backfill, user=user, **serializer.validated_data)
        return Response(detail_of(pk))

    @extend_schema(
        operation_id="backfills_delete",
        summary="Delete a backfill",
        responses={204: None} | problems(409),
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Remove an ended backfill from the lists. Its record and the data that it materialized
        stay.
        """
        delete_backfill(backfill_numbered(pk), user=signed_in(request))
        return Response(status=204)


class BackfillOutcomeView(ApiView):
    """The reasons why partitions of a backfill were not materialized."""

    @extend_schema(
        operation_id="backfills_outcome",
        summary="Read failures and skips of a backfill",
        parameters=[IF_NONE_MATCH],
        responses={200: OutcomeSerializer},
        examples=[OUTCOME_EXAMPLE],
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return failures grouped by error, and skips by reason; for partitions in flight, also the
        backfills that held these partitions.
        """
        return conditional(request, outcome_of(backfill_numbered(pk)))
