"""Serializers of selections, and of comparisons of data with records."""

from typing import Any

from rest_framework import serializers

from slicewise.partitions import LONGEST_SELECTION
from slicewise_server.web.api.serializers import StrictSerializer, TextField


class SelectionSerializer(StrictSerializer):
    """Partitions of an asset."""

    selection = TextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_SELECTION,
        help_text="Text of the selection grammar. Empty for an asset that is not partitioned."
        " For verification, empty also means all materialized partitions.",
    )


class DifferenceSerializer(serializers.Serializer[Any]):
    """A partition whose data differs from the record."""

    key = serializers.CharField(allow_blank=True)
    path = serializers.CharField(help_text="Folder of the partition below the folder of the asset.")
    reason = serializers.CharField(
        help_text="The difference as text: `no data`, `800 bytes, 900 recorded`."
    )
    recorded_bytes = serializers.IntegerField(allow_null=True)
    recorded_rows = serializers.IntegerField(allow_null=True)


class VerificationSerializer(serializers.Serializer[Any]):
    """The number of partitions compared with records, and the partitions that differ."""

    compared = serializers.IntegerField()
    differing = DifferenceSerializer(many=True)
