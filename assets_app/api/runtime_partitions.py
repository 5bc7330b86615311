"""Adding and removing runtime partitions."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.execution.request.runtime_partitions import add_partitions, remove_partitions
from assets_app.queries.lookups import asset_named
from assets_app.serializers import AddedKeysSerializer, KeysSerializer, KeyTextsSerializer
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, problems


class RuntimePartitionsView(ApiView):
    """Keys of runtime partitions."""

    @extend_schema(
        operation_id="assets_add_partitions",
        summary="Add runtime partitions",
        parameters=[IDEMPOTENCY_KEY],
        request=KeysSerializer,
        responses={201: AddedKeysSerializer},
        examples=[OpenApiExample("Two carriers", {"keys": ["AA", "UA"]}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Add keys for all assets that share the runtime partitions. The partitions of new keys are
        missing, and adding a key makes nothing due. A removed key is restored with its history: the
        partition may be materialized already.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        body = KeysSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            added_keys = add_partitions(asset, body.validated_data["keys"], user=signed_in(request))
            return Response({"keys": added_keys}, status=201)

        return execute_once(request, act)


class RuntimePartitionsRemoveView(ApiView):
    """Removal of keys of runtime partitions."""

    @extend_schema(
        operation_id="assets_remove_partitions",
        summary="Remove runtime partitions",
        parameters=[IDEMPOTENCY_KEY],
        request=KeyTextsSerializer,
        responses={200: AddedKeysSerializer} | problems(409),
        examples=[OpenApiExample("A carrier", {"keys": ["AA"]}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Remove keys for all assets that share the runtime partitions. The partitions no longer
        exist and make nothing due; existing data and its record stay. A run that finds a removed
        key adds the key again. 409 while a run is materializing one of the partitions.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        body = KeyTextsSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            removed_keys = remove_partitions(
                asset, body.validated_data["keys"], user=signed_in(request)
            )
            return Response({"keys": removed_keys})

        return execute_once(request, act)
