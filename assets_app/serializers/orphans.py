"""Serializers of partitions that a definition no longer has."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from slicewise_server.web.api.serializers import StrictSerializer


class OrphanSerializer(serializers.Serializer[Any]):
    """A partition on record that the definition does not have."""

    id = serializers.IntegerField()
    key = serializers.CharField(allow_blank=True)
    path = serializers.CharField(
        allow_blank=True,
        help_text="Folder of the partition below the folder of the asset; empty if unknown.",
    )
    rows = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    materialized_at = serializers.DateTimeField(allow_null=True)
    kept = serializers.CharField(
        allow_blank=True,
        help_text="The reason why the data is kept; empty if the data can be removed.",
    )


class OrphanPageSerializer(serializers.Serializer[Any]):
    """The first of the partitions that the definition no longer has."""

    orphans = OrphanSerializer(many=True)
    more = serializers.BooleanField(help_text="Whether more orphans exist than this answer lists.")


class OrphanIdsSerializer(StrictSerializer):
    """Ids of partitions, taken from a list of orphans."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        min_length=1,
        max_length=settings.MAX_PARTITIONS_PER_REQUEST,
        help_text="Ids from the list of orphans, of partitions whose data is to be removed.",
    )


class OrphanRemovalSerializer(serializers.Serializer[Any]):
    """Partitions whose data was removed, and partitions whose data was kept."""

    removed = OrphanSerializer(many=True)
    kept = OrphanSerializer(many=True)
