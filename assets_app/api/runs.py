"""Runs, logs of runs, and canceling."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiList, ApiView, signed_in
from assets_app.execution.queue.control import cancel_run
from assets_app.models import TERMINAL_STATES, Queue, Run, RunLog, RunPartition, RunState, Trigger
from assets_app.queries.lookups import LARGEST_ID, partitions_of_run, run_numbered
from assets_app.serializers import (
    LogEntrySerializer,
    LogPageSerializer,
    RunDetailSerializer,
    RunPartitionSerializer,
    RunSerializer,
)
from slicewise_server.web.api.etags import conditional
from slicewise_server.web.api.filtering import WordFilter, WordsFilter, refuse_unknown_parameters
from slicewise_server.web.api.pages import bad_cursor, encode_cursor, read_cursor
from slicewise_server.web.api.schema import IF_NONE_MATCH, problems

LOG_PIECES_PER_PAGE = 200


class NumberOfRowFilter(django_filters.Filter):
    """Filter by the number of a row, of few digits: a million digits take minutes to parse."""

    field_class = forms.IntegerField

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, min_value=0, max_value=LARGEST_ID)


class RunFilter(django_filters.FilterSet):
    """Filters of the list of runs."""

    asset = django_filters.CharFilter(field_name="asset__name")
    state = WordsFilter(choices=RunState.choices)
    trigger = WordFilter(choices=Trigger.choices)
    queue = WordFilter(choices=Queue.choices)
    group = NumberOfRowFilter(field_name="group_id")
    tick = NumberOfRowFilter(field_name="tick_id")
    created_after = django_filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = django_filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")


class RunPartitionFilter(django_filters.FilterSet):
    """Filters of the list of a run's partitions."""

    asset = django_filters.CharFilter(field_name="partition__asset__name")
    state = WordsFilter(choices=RunPartition.State.choices)


def log_page(run: Run, position: Any) -> dict[str, Any]:
    """Return the log of a run after ``position``, with the cursor of the next page.

    ``ended`` says that no more will follow.
    """
    has_ended = run.state in TERMINAL_STATES
    logs = RunLog.objects.filter(attempt__run=run).order_by("attempt__number", "sequence")
    if position is not None:
        attempt, sequence = _log_position(position)
        logs = logs.filter(
            Q(attempt__number__gt=attempt) | Q(attempt__number=attempt, sequence__gt=sequence)
        )
    # The state was read before the log, so that the log of an ended run is complete.
    fields = ("attempt__number", "sequence", "step", "at", "text")
    entries = list(logs.values(*fields)[:LOG_PIECES_PER_PAGE])
    if entries:
        position = [entries[-1]["attempt__number"], entries[-1]["sequence"]]
    return {
        "entries": LogEntrySerializer(entries, many=True).data,
        "cursor": None if position is None else encode_cursor(position),
        "ended": has_ended and len(entries) < LOG_PIECES_PER_PAGE,
    }


def _log_position(position: Any) -> tuple[int, int]:
    match position:
        case [int(attempt), int(sequence)] if all(0 <= number <= LARGEST_ID for number in position):
            return attempt, sequence
    raise bad_cursor()


class RunsView(ApiList[Run]):
    """Runs of all assets."""

    # Only the columns that are shown: a page holds up to a thousand runs.
    queryset = Run.objects.select_related("asset", "requested_by").only(
        *RunSerializer.Meta.fields, "asset__name", "requested_by__username"
    )
    serializer_class = RunSerializer
    filterset_class = RunFilter

    @extend_schema(
        operation_id="runs_list",
        summary="List runs",
        responses={200: RunSerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List runs, newest first."""
        return self.list(request, *args, **kwargs)


class RunView(ApiView):
    """One run."""

    @extend_schema(
        operation_id="runs_read",
        summary="Read a run",
        parameters=[IF_NONE_MATCH],
        responses={200: RunDetailSerializer},
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the run with attempts, and partitions by state. `partition_list` has the first
        1,000 partitions; the others follow at the address in `partition_list_next`.
        """
        return conditional(request, RunDetailSerializer(run_numbered(pk)).data)


class RunPartitionsView(ApiList[RunPartition]):
    """The partitions of a run."""

    queryset = RunPartition.objects.none()
    serializer_class = RunPartitionSerializer
    filterset_class = RunPartitionFilter
    page_order = "position"

    def get_queryset(self) -> QuerySet[RunPartition]:
        if getattr(self, "swagger_fake_view", False):
            return self.queryset
        return partitions_of_run(run_numbered(self.kwargs["pk"])).select_related("partition__asset")

    @extend_schema(
        operation_id="runs_partitions",
        summary="List partitions of a run",
        responses={200: RunPartitionSerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the partitions of a run, in the order in which the run materializes them. The
        address in `partition_list_next` of a run leads here.
        """
        return self.list(request, *args, **kwargs)


class RunLogView(ApiView):
    """The log of a run."""

    @extend_schema(
        operation_id="runs_log",
        summary="Read a run's log",
        parameters=[
            OpenApiParameter("cursor", str, description="`cursor` of the previous answer."),
            IF_NONE_MATCH,
        ],
        responses={200: LogPageSerializer},
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the log of all attempts in order. Repeat with `cursor` until `ended` is true to
        follow the log of a running run.
        """
        refuse_unknown_parameters(request, {"cursor"})
        return conditional(request, log_page(run_numbered(pk), read_cursor(request)))


class RunCancelView(ApiView):
    """Cancellation of a run."""

    @extend_schema(
        operation_id="runs_cancel",
        summary="Cancel a run",
        request=None,
        responses={200: RunDetailSerializer} | problems(409),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Cancel a run. A waiting, queued or dispatched run ends at once, unless a lost attempt may
        still be at work; such a run and a running run are `canceling` until the work has stopped.
        409 for a publishing run, and for a run that is `canceling` or has ended.
        """
        cancel_run(run_numbered(pk), user=signed_in(request))
        return Response(RunDetailSerializer(run_numbered(pk)).data)
