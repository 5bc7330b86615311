"""Backfills: holding them back, stopping them, trying and asking again, several at once."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import once
from accounts_app.api.schema import IDEMPOTENCY_KEY, problems
from accounts_app.errors import ConflictingRequest
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

_PROBLEMS = (400, 401, 403, 404, 409, 422)
_MOST_SAID = 3


class _ControlView(ApiView):
    """One thing that is done to one backfill, once for each ``Idempotency-Key``."""

    def _done(
        self, request: Request, pk: int, act: Callable[..., Backfill], **how: Any
    ) -> Response:
        backfill = backfill_numbered(pk)

        def answer() -> Response:
            act(backfill, user=signed_in(request), **how)
            return Response(detail_of(pk))

        return once(request, answer)


class BackfillCancelView(_ControlView):
    """Stopping a backfill."""

    @extend_schema(
        operation_id="backfills_cancel",
        summary="Cancel a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(*_PROBLEMS),
    )
    def post(self, request: Request, pk: int) -> Response:
        """What is queued ends at once; `canceling` until all that runs has stopped."""
        return self._done(request, pk, cancel_backfill)


class BackfillPauseView(_ControlView):
    """Holding a backfill back."""

    @extend_schema(
        operation_id="backfills_pause",
        summary="Pause a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(*_PROBLEMS),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Nothing more of it starts, and what runs goes on to its end: `progress.running`."""
        return self._done(request, pk, pause_backfill)


class BackfillResumeView(_ControlView):
    """Letting it go on."""

    @extend_schema(
        operation_id="backfills_resume",
        summary="Resume a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: BackfillDetailSerializer} | problems(*_PROBLEMS),
    )
    def post(self, request: Request, pk: int) -> Response:
        """At once."""
        return self._done(request, pk, resume_backfill)


class RetryFailedSerializer(CodeSerializer):
    """The partitions that are retried, and the code that makes them."""

    canceled = serializers.BooleanField(
        default=False, help_text="Whether canceled partitions are retried as well."
    )


class BackfillRetryFailedView(_ControlView):
    """What has failed once more."""

    @extend_schema(
        operation_id="backfills_retry_failed",
        summary="Retry what has failed of a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=RetryFailedSerializer,
        responses={200: BackfillDetailSerializer} | problems(*_PROBLEMS, 413),
        examples=[CODE_EXAMPLE],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Puts partitions that failed, or were skipped for want of something upstream, back to
        waiting in the same backfill, which is unfinished again; with `canceled` canceled
        partitions as well."""
        require_control(backfill_numbered(pk), Action.BACKFILL, signed_in(request))
        asked = RetryFailedSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self._done(request, pk, retry_failed, **asked.validated_data)


class BackfillCloneView(ApiView):
    """The same request again."""

    @extend_schema(
        operation_id="backfills_clone",
        summary="Clone a backfill",
        parameters=[IDEMPOTENCY_KEY],
        request=BackfillCloneSerializer,
        responses={201: BackfillDetailSerializer} | problems(*_PROBLEMS, 413),
        examples=[CLONE_EXAMPLE],
    )
    def post(self, request: Request, pk: int) -> Response:
        """A new backfill as this one was asked for, but for the fields that are given; by the
        newest code and at once, unless they say otherwise."""
        backfill = backfill_numbered(pk)
        policy.require_for_some(signed_in(request), Action.BACKFILL)
        asked = BackfillCloneSerializer(data=request.data)
        asked.is_valid(raise_exception=True)

        def answer() -> Response:
            return created(clone_backfill(backfill, asked.validated_data, user=signed_in(request)))

        return once(request, answer)


class RefusedBackfillSerializer(serializers.Serializer[Any]):
    """A backfill that stays as it is."""

    backfill = serializers.IntegerField()
    reason = serializers.CharField()


class BulkResultSerializer(serializers.Serializer[Any]):
    """Those to which it was done, and why not to the others."""

    done = serializers.ListField(child=serializers.IntegerField())
    refused = RefusedBackfillSerializer(many=True)


def bulk_detail(result: BulkResult) -> Any:
    """What came of doing the same to several backfills, as JSON."""
    refused = [{"backfill": pk, "reason": reason} for pk, reason in result.refused.items()]
    return BulkResultSerializer({"done": result.done, "refused": refused}).data


class BackfillsBulkView(ApiView):
    """The same done to several backfills."""

    @extend_schema(
        operation_id="backfills_bulk",
        summary="Do the same to several backfills",
        parameters=[IDEMPOTENCY_KEY],
        request=BulkSerializer,
        responses={200: BulkResultSerializer} | problems(400, 401, 403, 409, 413, 422),
        examples=[BULK_EXAMPLE, BULK_RESULT_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """To each that takes it; `refused` says why the others do not. 409 if none does."""
        policy.require_for_some(signed_in(request), Action.BACKFILL)
        asked = BulkSerializer(data=request.data)
        asked.is_valid(raise_exception=True)

        def answer() -> Response:
            given = asked.validated_data
            result = in_bulk(given["action"], given["backfills"], user=signed_in(request))
            if not result.done:
                raise ConflictingRequest({"": list(result.refused.values())[:_MOST_SAID]})
            return Response(bulk_detail(result))

        return once(request, answer)
