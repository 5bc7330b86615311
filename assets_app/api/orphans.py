"""Partitions that an asset's definition no longer has, and the removal of old data."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.execution.request.orphans import Orphan, find_orphans, remove_orphans
from assets_app.queries.lookups import asset_named
from assets_app.serializers import (
    OrphanIdsSerializer,
    OrphanPageSerializer,
    OrphanRemovalSerializer,
)
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY


def orphan_list(orphans: Sequence[Orphan]) -> list[dict[str, Any]]:
    """Return orphans as the API shows orphans."""
    return [
        {
            "id": orphan.row.partition_id,
            "key": orphan.row.key,
            "path": orphan.row.path,
            "rows": orphan.row.rows,
            "bytes": orphan.row.bytes,
            "materialized_at": orphan.row.materialized_at,
            "kept": orphan.kept,
        }
        for orphan in orphans
    ]


class PartitionOrphansView(ApiView):
    """Partitions on record that the definition no longer has."""

    @extend_schema(
        operation_id="assets_list_orphans",
        summary="List orphaned partitions",
        responses={200: OrphanPageSerializer},
    )
    def get(self, request: Request, name: str) -> Response:
        """List partitions with data on record that the definition no longer has: segments were
        removed, windows excluded, bounds moved, or the partition definition was replaced. Each is
        listed with its folder and, if the data cannot be removed, the reason.
        """
        most = settings.MAX_PARTITIONS_PER_REQUEST
        orphans = find_orphans(asset_named(name), limit=most + 1)
        page = {"orphans": orphan_list(orphans[:most]), "more": len(orphans) > most}
        return Response(OrphanPageSerializer(page).data)


class PartitionOrphansRemoveView(ApiView):
    """Removal of the data of partitions that the definition no longer has."""

    @extend_schema(
        operation_id="assets_remove_orphans",
        summary="Remove data of orphaned partitions",
        parameters=[IDEMPOTENCY_KEY],
        request=OrphanIdsSerializer,
        responses={200: OrphanRemovalSerializer},
        examples=[OpenApiExample("Two partitions", {"ids": [17, 18]}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Remove the data of these partitions and make the partitions missing; history is kept. Ids
        of partitions that the definition has, or of other assets, are ignored. The answering
        process removes the data: 400 where that process has no access to the data.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.PARTITIONS)
        body = OrphanIdsSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            ids = set(body.validated_data["ids"])
            removal = remove_orphans(asset, user=signed_in(request), only=ids)
            lists = {"removed": orphan_list(removal.removed), "kept": orphan_list(removal.kept)}
            return Response(OrphanRemovalSerializer(lists).data)

        return execute_once(request, act)
