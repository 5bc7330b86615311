"""Reports of writes by other programs."""

from typing import Any

from django.db.models import F
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from assets_app.execution.request.reporting import ReportedPartition, ReportedWrite, report_write
from assets_app.models import WriteReport
from assets_app.queries.lookups import asset_named
from assets_app.serializers import ReportedWriteSerializer, WriteReportSerializer
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, problems

PARTITIONS_NAMED = 100


def report_detail(report: WriteReport) -> dict[str, Any]:
    """Return a report as the API shows reports."""
    materializations = report.materializations.order_by("id").values(
        "version", key=F("partition__key")
    )
    return WriteReportSerializer(
        {
            "id": report.pk,
            "asset": report.asset.name,
            "selection": report.selection,
            "partition_count": report.partition_count,
            "partitions": list(materializations[:PARTITIONS_NAMED]),
            "metadata": report.metadata,
            "reported_by": report.reported_by_name,
            "created_at": report.created_at,
        }
    ).data


class AssetEventsView(ApiView):
    """Writes of an external asset, reported by programs."""

    @extend_schema(
        operation_id="assets_report_write",
        summary="Report a write by another program",
        parameters=[IDEMPOTENCY_KEY],
        request=ReportedWriteSerializer,
        responses={201: WriteReportSerializer} | problems(409),
        examples=[
            OpenApiExample(
                "A day, with row count and size",
                {"selection": "2013-01-01", "rows": 842, "metadata": {"job": "nightly-import"}},
                request_only=True,
            ),
            OpenApiExample(
                "Several days, with the rows of each",
                {
                    "partitions": [
                        {"key": "2013-01-01", "rows": 842},
                        {"key": "2013-01-02", "rows": 943},
                    ]
                },
                request_only=True,
            ),
            OpenApiExample("An asset that is not partitioned", {}, request_only=True),
            OpenApiExample(
                "The recorded report",
                {
                    "id": 3,
                    "asset": "raw_flights",
                    "selection": "2013-01-01",
                    "partition_count": 1,
                    "partitions": [{"key": "2013-01-01", "version": 2}],
                    "metadata": {"job": "nightly-import"},
                    "reported_by": "importer",
                    "created_at": "2024-07-01T04:00:00Z",
                },
                response_only=True,
                status_codes=["201"],
            ),
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Record a write by another program. Each partition gets the next version, and downstream
        partitions become due or stale, as after a run. The asset must be one that no function
        materializes. A write that is reported twice is recorded as two writes, unless both reports
        have the same `Idempotency-Key`.
        """
        asset = asset_named(name)
        policy.require(signed_in(request), Action.REPORT)
        body = ReportedWriteSerializer(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            values = dict(body.validated_data)
            partitions = [ReportedPartition(**partition) for partition in values.pop("partitions")]
            write = ReportedWrite(asset=asset, partitions=partitions, **values)
            return Response(report_detail(report_write(write, user=signed_in(request))), status=201)

        return execute_once(request, act)
