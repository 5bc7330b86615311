"""Comparison of partitions' data with records, and removal of partitions from the record."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.execution.request.forgetting import forget_partitions
from assets_app.execution.request.verifying import Verification, verify_partitions
from assets_app.queries.lookups import asset_named
from assets_app.serializers import AddedKeysSerializer, SelectionSerializer, VerificationSerializer
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, problems


def verification_detail(verification: Verification) -> dict[str, Any]:
    """Return a verification as the API shows it."""
    return VerificationSerializer(
        {
            "compared": verification.compared,
            "differing": [
                {
                    "key": difference.key,
                    "path": difference.path,
                    "reason": difference.reason,
                    "recorded_bytes": difference.recorded.bytes,
                    "recorded_rows": difference.recorded.rows,
                }
                for difference in verification.differing
            ],
        }
    ).data


class PartitionsVerifyView(ApiView):
    """Comparison of the data of partitions with records."""

    @extend_schema(
        operation_id="assets_verify_partitions",
        summary="Compare data with the record",
        request=SelectionSerializer,
        responses={200: VerificationSerializer},
        examples=[OpenApiExample("A month", {"selection": "2013-01"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """List the partitions whose data is missing, or differs in size from the record made when
        the data was published. The answering process reads the data: 400 where that process has no
        access to the data, and for more partitions than a request may name.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.MATERIALIZE)
        body = SelectionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        verification = verify_partitions(
            asset,
            body.validated_data["selection"],
            user=signed_in(request),
            at_most=settings.MAX_PARTITIONS_PER_REQUEST,
        )
        return Response(verification_detail(verification))


class PartitionsForgetView(ApiView):
    """Request to make partitions missing again."""

    @extend_schema(
        operation_id="assets_forget_partitions",
        summary="Make partitions missing again",
        parameters=[IDEMPOTENCY_KEY],
        request=SelectionSerializer,
        responses={200: AddedKeysSerializer} | problems(409),
        examples=[OpenApiExample("A day", {"selection": "2013-01-01"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Make the partitions missing again. Data and history are kept, and nothing becomes due.
        409 while a run is materializing one of the partitions.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        body = SelectionSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            selection = body.validated_data["selection"]
            keys = forget_partitions(asset, selection, user=signed_in(request))
            return Response({"keys": keys})

        return execute_once(request, act)
