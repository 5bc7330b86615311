"""The API of control over backfills: pause, resume, cancel, retry, clone, and actions
on several.
"""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.api.retrying import CodeSerializer
from backfills_app.api.backfills import created, detail_of
from backfills_app.api.examples import (
    BULK_EXAMPLE,
    BULK_RESULT_EXAMPLE,
    CLONE_EXAMPLE,
    CODE_EXAMPLE,
)
from backfills_app.models import Backfill
from backfills_app.queries.lookups import backfill_numbered
from backfills_app.serializers import (
    BackfillCloneSerializer,
    BackfillDetailSerializer,
    BulkSerializer,
)
from backfills_app.services import (
    BulkResult,
    cancel_backfill,
    clone_backfill,
    in_bulk,
    pause_backfill,
    require_control,
    resume_backfill,
    retry_failed,
)
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, problems
from slicewise_server.web.request_errors import ConflictingRequest

_MOST_SAID = 3


class _ControlView(ApiView):
    """A base for views that apply one action to one backfill, once for each ``Idempotency-Key``."""

    def _done(
        self, request: Request, pk: int, act: Callable[..., Backfill], **how: Any
    ) -> Response:
        backfill = backfill_numbered(pk)

        def answer() -> Response:
            act(backfill, user=signed_in(request), **how)
            return Response(detail_of(pk))

        return execute_once(request, answer)


class BackfillCancelView(_ControlView):
    """The cancellation of a backfill."""

    @extend_schema(
        operation_id="backfills_cancel",
        summary="Cancel a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(409),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Cancel a backfill: queued runs end at once, and the state is `canceling` until all active
        runs have stopped.
        """
        return self._done(request, pk, cancel_backfill)


class BackfillPauseView(_ControlView):
    """The pause of a backfill."""

    @extend_schema(
        operation_id="backfills_pause",
        summary="Pause a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(409),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Pause a backfill: no more runs start, and active runs go on to their end
        (`progress.running`).
        """
        return self._done(request, pk, pause_backfill)


class BackfillResumeView(_ControlView):
    """The end of a pause."""

    @extend_schema(
        operation_id="backfills_resume",
        summary="Resume a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(409),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Resume a backfill at once."""
        return self._done(request, pk, resume_backfill)


class RetryFailedSerializer(CodeSerializer):
    """The partitions to retry, and the code for the retry."""

    canceled = serializers.BooleanField(
        default=False, help_text="Whether to retry canceled partitions as well."
    )


class BackfillRetryFailedView(_ControlView):
    """The retry of failed partitions."""

    @extend_schema(
        operation_id="backfills_retry_failed",
        summary="Retry failed partitions of a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=RetryFailedSerializer,
        responses={200: BackfillDetailSerializer} | problems(409),
        examples=[CODE_EXAMPLE],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Set partitions that failed, or were skipped because of missing upstream partitions, back
        to waiting in the same backfill, which becomes unfinished again; with `canceled` canceled
        partitions as well.
        """
        require_control(backfill_numbered(pk), Action.BACKFILL, signed_in(request))
        serializer = RetryFailedSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self._done(request, pk, retry_failed, **serializer.validated_data)


class BackfillCloneView(ApiView):
    """The clone of a backfill."""

    @extend_schema(
        operation_id="backfills_clone",
        summary="Clone a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=BackfillCloneSerializer,
        responses={201: BackfillDetailSerializer} | problems(409),
        examples=[CLONE_EXAMPLE],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create a backfill from the same request, except for the fields that are given; with the
        newest code and at once, unless the fields say otherwise. A group or a tag means the present
        assets. `start` and `end`, or `selection`, replace the whole period.
        """
        backfill = backfill_numbered(pk)
        policy.require_for_some(signed_in(request), Action.BACKFILL)
        serializer = BackfillCloneSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)

        def answer() -> Response:
            return created(
                clone_backfill(backfill, serializer.validated_data, user=signed_in(request))
            )

        return execute_once(request, answer)


class RefusedBackfillSerializer(serializers.Serializer[Any]):
    """A backfill that refused the action."""

    backfill = serializers.IntegerField()
    reason = serializers.CharField()


class BulkResultSerializer(serializers.Serializer[Any]):
    """The backfills that took the action, and the refusals of other backfills."""

    done = serializers.ListField(child=serializers.IntegerField())
    refused = RefusedBackfillSerializer(many=True)


def bulk_detail(result: BulkResult) -> Any:
    """Return the result of an action on several backfills as JSON."""
    refused = [{"backfill": pk, "reason": reason} for pk, reason in result.refused.items()]
    return BulkResultSerializer({"done": result.done, "refused": refused}).data


class BackfillsBulkView(ApiView):
    """An action on several backfills."""

    @extend_schema(
        operation_id="backfills_bulk",
        summary="Apply an action to several backfills",
        parameters=[IDEMPOTENCY_KEY],
        request=BulkSerializer,
        responses={200: BulkResultSerializer} | problems(409),
        examples=[BULK_EXAMPLE, BULK_RESULT_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Apply an action to each of several backfills; `refused` has the reasons of backfills that
        refuse it. 409 if all refuse.
        """
        policy.require_for_some(signed_in(request), Action.BACKFILL)
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)

        def answer() -> Response:
            fields = serializer.validated_data
            result = in_bulk(fields["action"], fields["backfills"], user=signed_in(request))
            if not result.done:
                raise ConflictingRequest({"": list(result.refused.values())[:_MOST_SAID]})
            return Response(bulk_detail(result))

        return execute_once(request, answer)
