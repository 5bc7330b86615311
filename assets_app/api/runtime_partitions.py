"""Adding and removing partitions of sets found at run time."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import once
from accounts_app.api.schema import IDEMPOTENCY_KEY, problems
from accounts_app.policy import Action
from assets_app.execution.runtime_partitions import add_partitions, remove_partitions
from assets_app.queries.lookups import asset_named
from assets_app.serializers import AddedKeysSerializer, KeysSerializer, KeyTextsSerializer


class RuntimePartitionsView(ApiView):
    """Keys of a set found at run time."""

    @extend_schema(
        operation_id="assets_add_partitions",
        summary="Add partitions of a set found at run time",
        parameters=[IDEMPOTENCY_KEY],
        request=KeysSerializer,
        responses={201: AddedKeysSerializer} | problems(400, 401, 403, 404, 413, 422),
        examples=[OpenApiExample("Two carriers", {"keys": ["AA", "UA"]}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """For all assets that share the set. No data comes with a key: its partition is missing,
        and nothing is due by it. One that was removed is there again, with its history."""
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        asked = KeysSerializer(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            new = add_partitions(asset, asked.validated_data["keys"], user=signed_in(request))
            return Response({"keys": new}, status=201)

        return once(request, act)


class RuntimePartitionsRemoveView(ApiView):
    """Taking them out again."""

    @extend_schema(
        operation_id="assets_remove_partitions",
        summary="Remove partitions of a set found at run time",
        parameters=[IDEMPOTENCY_KEY],
        request=KeyTextsSerializer,
        responses={200: AddedKeysSerializer} | problems(400, 401, 403, 404, 409, 413, 422),
        examples=[OpenApiExample("A carrier", {"keys": ["AA"]}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """They are listed no more and make nothing due; what was made of them stays. 409 while a
        run makes one of them."""
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        asked = KeyTextsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            gone = remove_partitions(asset, asked.validated_data["keys"], user=signed_in(request))
            return Response({"keys": gone})

        return once(request, act)
