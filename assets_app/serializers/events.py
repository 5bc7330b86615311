"""Serializers of reported writes by other programs."""

from typing import Any

from rest_framework import serializers

from slicewise.partitions import LONGEST_SELECTION
from slicewise.texts import masked_json
from slicewise_server.web.api.serializers import (
    JSONObject,
    StrictSerializer,
    TextField,
    WholeNumberField,
)

LARGEST_NUMBER = 2**63 - 1


class ReportedPartitionSerializer(StrictSerializer):
    """A partition that another program has written, with row count and size."""

    key = TextField(max_length=1000, help_text="The key, as in the list of partitions.")
    rows = WholeNumberField(
        required=False, allow_null=True, default=None, min_value=0, max_value=LARGEST_NUMBER
    )
    bytes = WholeNumberField(
        required=False, allow_null=True, default=None, min_value=0, max_value=LARGEST_NUMBER
    )


class ReportedWriteSerializer(StrictSerializer):
    """The partitions that another program has written, with row count, size and metadata."""

    selection = TextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_SELECTION,
        help_text="Text of the selection grammar; empty for an asset that is not partitioned.",
    )
    rows = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=LARGEST_NUMBER,
        help_text="Number of rows. Only for a single partition.",
    )
    bytes = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=LARGEST_NUMBER,
        help_text="Size in bytes. Only for a single partition.",
    )
    partitions = ReportedPartitionSerializer(
        many=True,
        required=False,
        default=list,
        help_text="Partitions, each with row count and size, in place of `selection`, `rows`"
        " and `bytes`.",
    )
    metadata = JSONObject(
        required=False, default=dict, help_text="Any JSON object, stored with the report."
    )


class WrittenPartitionSerializer(serializers.Serializer[Any]):
    """A reported partition, and the version that the report gives the partition."""

    key = serializers.CharField()
    version = serializers.IntegerField()


class WriteReportSerializer(serializers.Serializer[Any]):
    """A reported write by another program, with the first hundred of the written partitions."""

    id = serializers.IntegerField()
    asset = serializers.CharField()
    selection = serializers.CharField(allow_blank=True)
    partition_count = serializers.IntegerField()
    partitions = WrittenPartitionSerializer(many=True)
    metadata = serializers.SerializerMethodField()
    reported_by = serializers.CharField()
    created_at = serializers.DateTimeField()

    def get_metadata(self, report: Any) -> dict[str, Any]:
        metadata = report["metadata"] if isinstance(report, dict) else report.metadata
        masked: dict[str, Any] = masked_json(metadata)
        return masked
