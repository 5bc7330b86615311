"""The API of a backfill's partitions."""

from typing import Any

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiList
from assets_app.models import SkipReason
from backfills_app.models import BackfillPartition
from backfills_app.queries.lookups import backfill_numbered
from backfills_app.queries.partition_list import ListPosition, Narrowed, list_of_partitions
from backfills_app.serializers import BackfillPartitionSerializer
from slicewise_server.web.api.filtering import WordsFilter, filter_values
from slicewise_server.web.api.pages import (
    bad_cursor,
    page_response,
    read_cursor,
    read_page_size,
)


class BackfillPartitionFilter(django_filters.FilterSet):
    """The filters of the list of a backfill's partitions."""

    asset = django_filters.CharFilter(field_name="backfill_asset__asset__name")
    state = WordsFilter(choices=BackfillPartition.State.choices)
    reason = WordsFilter(choices=SkipReason.choices)


class BackfillPartitionsView(ApiList[BackfillPartition]):
    """The partitions of a backfill."""

    queryset = BackfillPartition.objects.none()
    serializer_class = BackfillPartitionSerializer
    filterset_class = BackfillPartitionFilter

    @extend_schema(
        operation_id="backfills_partitions",
        summary="List partitions of a backfill",
        responses={200: BackfillPartitionSerializer(many=True)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List partitions by asset, upstream before downstream, then by time; while the backfill is
        being created, list the partitions known by now.
        """
        backfill = backfill_numbered(kwargs["pk"])
        values = filter_values(request, BackfillPartitionFilter, self.queryset)
        narrowed = Narrowed(values["asset"], values["state"], values["reason"])
        last, size = _read_position(request), read_page_size(request)
        try:
            partitions = list_of_partitions(backfill, narrowed, last, size + 1)
        except LookupError:
            raise bad_cursor() from None
        page = partitions[:size]
        following = _position_of(page[-1]) if len(partitions) > size else None
        return page_response(request, self.get_serializer(page, many=True).data, following)


def _read_position(request: Request) -> ListPosition | None:
    match read_cursor(request):
        case None:
            return None
        case [int() as asset_row, int() as position]:
            return ListPosition(asset_row, position)
    raise bad_cursor()


def _position_of(partition: BackfillPartition) -> ListPosition:
    return ListPosition(partition.backfill_asset_id, partition.position)
