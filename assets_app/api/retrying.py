"""Retries and re-runs of ended runs through the API."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.api.assets import request_detail
from assets_app.execution.request.retrying import (
    Code,
    Retried,
    rerun,
    retry_group,
    retry_run,
    retry_runs,
)
from assets_app.models import RunGroup
from assets_app.queries.lookups import LARGEST_ID, run_numbered
from assets_app.serializers import RequestSerializer, RunDetailSerializer
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, problems
from slicewise_server.web.api.serializers import StrictSerializer, WholeNumberField
from slicewise_server.web.request_errors import InvalidRequest


class CodeSerializer(StrictSerializer):
    """The version of the code for the new attempt or run."""

    code = serializers.ChoiceField(
        choices=[code.value for code in Code],
        default=Code.SAME.value,
        help_text="`same`: the code version of the run; `newest`: the current code version of"
        " the asset.",
    )


class RetrySerializer(CodeSerializer):
    """The runs to retry: by number, or all failed runs of a group."""

    runs = serializers.ListField(
        child=WholeNumberField(min_value=1, max_value=LARGEST_ID), required=False, allow_empty=False
    )
    group = WholeNumberField(required=False, min_value=1, max_value=LARGEST_ID)


class RefusedSerializer(serializers.Serializer[Any]):
    """A run that was not retried, and the reason."""

    run = serializers.IntegerField()
    reason = serializers.CharField()


class RetriedSerializer(serializers.Serializer[Any]):
    """The runs that are queued again, and the refused runs with reasons."""

    runs = serializers.ListField(child=serializers.IntegerField())
    refused = RefusedSerializer(many=True)


def retried_detail(retried: Retried) -> dict[str, Any]:
    """Return the result of a request to retry several runs, as the API shows the result."""
    refused = [{"run": run, "reason": reason} for run, reason in sorted(retried.refused.items())]
    return RetriedSerializer({"runs": retried.runs, "refused": refused}).data


class RunRetryView(ApiView):
    """Another attempt at a run."""

    @extend_schema(
        operation_id="runs_retry",
        summary="Retry a run",
        parameters=[IDEMPOTENCY_KEY],
        request=CodeSerializer,
        responses={200: RunDetailSerializer} | problems(409),
        examples=[OpenApiExample("By the newest code", {"code": "newest"}, request_only=True)],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Queue a failed, canceled or skipped run again, with history kept. If another run is
        materializing a partition of the run, the answer is 409.
        """
        run, code = run_numbered(pk), _code(request)

        def act() -> Response:
            retry_run(run, code=code, user=signed_in(request))
            return Response(RunDetailSerializer(run_numbered(pk)).data)

        return execute_once(request, act)


class RunRerunView(ApiView):
    """A new run of an ended run's partitions."""

    @extend_schema(
        operation_id="runs_rerun",
        summary="Run an ended run again",
        parameters=[IDEMPOTENCY_KEY],
        request=CodeSerializer,
        responses={201: RequestSerializer} | problems(409),
        examples=[OpenApiExample("By the newest code", {"code": "newest"}, request_only=True)],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create a new run of the same partitions with the same params; the ended run stays
        unchanged. Partitions that another run is materializing are left out and named; if no
        partition remains, the answer is 409.
        """
        run, code = run_numbered(pk), _code(request)

        def act() -> Response:
            detail = request_detail(rerun(run, code=code, user=signed_in(request)))
            return Response(detail, status=201, headers={"Location": detail["runs_url"]})

        return execute_once(request, act)


class RunsRetryView(ApiView):
    """Another attempt at several runs."""

    @extend_schema(
        operation_id="runs_retry_several",
        summary="Retry several runs",
        parameters=[IDEMPOTENCY_KEY],
        request=RetrySerializer,
        responses={200: RetriedSerializer} | problems(409),
        examples=[
            OpenApiExample("By number", {"runs": [12, 13]}, request_only=True),
            OpenApiExample("All of a request", {"group": 7, "code": "newest"}, request_only=True),
            OpenApiExample(
                "Retried",
                {"runs": [12], "refused": [{"run": 13, "reason": "Run 13 has succeeded: …"}]},
                response_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Retry each run that can be retried; the others stay unchanged and are named. If no run
        can be retried, the answer is 409.
        """
        policy.require(signed_in(request), Action.MATERIALIZE)
        body = RetrySerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            return Response(retried_detail(_retry(body.validated_data, signed_in(request))))

        return execute_once(request, act)


def _retry(values: dict[str, Any], user: Any) -> Retried:
    if ("runs" in values) == ("group" in values):
        raise InvalidRequest({"": "Name the runs by number, or a group."})
    if "runs" in values:
        return retry_runs(values["runs"], code=values["code"], user=user)
    return retry_group(group_numbered(values["group"]), code=values["code"], user=user)


def group_numbered(pk: int) -> RunGroup:
    """Return the run group of this number; raise InvalidRequest on ``group`` if there is none."""
    group = RunGroup.objects.filter(pk=pk).first()
    if group is None:
        raise InvalidRequest({"group": f"There is no group {pk}."})
    return group


def _code(request: Request) -> str:
    policy.require(signed_in(request), Action.MATERIALIZE)
    body = CodeSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    code: str = body.validated_data["code"]
    return code
