"""The plan of a backfill as JSON, with the plan of each asset."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.models import BundleVersion
from assets_app.serializers import StrategyField
from backfills_app.models import AssetRole
from partitions_app.rules import nonexistent_json


class CodeVersionSerializer(serializers.ModelSerializer[BundleVersion]):
    """The version of a bundle that is frozen."""

    class Meta:
        model = BundleVersion
        fields: tuple[str, ...] = ("id", "digest")
        read_only_fields: tuple[str, ...] = fields


class EstimateSerializer(serializers.Serializer[Any]):
    """The estimated duration, by past runs."""

    seconds = serializers.FloatField()
    low = serializers.FloatField(help_text="By the lower quartile of past runs.")
    high = serializers.FloatField(help_text="By the upper quartile.")
    runs_seen = serializers.IntegerField()


class HeldBySerializer(serializers.Serializer[Any]):
    """A backfill, or another run, that materializes partitions of the asset at this moment."""

    backfill = serializers.IntegerField(allow_null=True, help_text="Null for another run.")
    name = serializers.CharField()
    partitions = serializers.IntegerField()


class NonexistentSerializer(serializers.Serializer[Any]):
    """The number of partitions that do not exist, with the first and the last."""

    partitions = serializers.IntegerField()
    first = serializers.CharField(help_text="Key of the first one.")
    last = serializers.CharField(help_text="Key of the last one.")


class RemovedPartitionsSerializer(serializers.Serializer[Any]):
    """The number of partitions that a definition no longer has, with the first and the last."""

    partitions = serializers.IntegerField()
    first = serializers.CharField(help_text="Key of the first one.")
    last = serializers.CharField(help_text="Key of the last one.")


class UpstreamGapSerializer(serializers.Serializer[Any]):
    """The partitions of an upstream asset that do not exist, or that the asset excludes."""

    asset = serializers.CharField()
    nonexistent = serializers.SerializerMethodField(
        help_text="Partitions that are needed and do not exist; null for none."
    )
    removed = RemovedPartitionsSerializer(
        allow_null=True,
        help_text="Partitions that are needed and that the upstream asset does not have any more;"
        " null for none.",
    )
    excluded = serializers.IntegerField(
        help_text="Number of excluded partitions, which are not needed."
    )
    reason = serializers.CharField(help_text="What does not exist, in words; empty for nothing.")
    excluded_text = serializers.CharField(help_text="What is excluded, in words.")

    @extend_schema_field(NonexistentSerializer(allow_null=True))
    def get_nonexistent(self, gap: Any) -> dict[str, Any] | None:
        return nonexistent_json(gap.nonexistent)


class PlannedAssetSerializer(serializers.Serializer[Any]):
    """The plan of a backfill for one asset. Numbers count partitions, except `runs`."""

    asset = serializers.CharField(source="asset.name")
    version = serializers.CharField(
        source="version.digest", help_text="Digest of the code that would be frozen."
    )
    role = serializers.ChoiceField(choices=AssetRole.choices, help_text="Why it is made.")
    layer = serializers.IntegerField(
        help_text="1 where it needs no other asset of the backfill, else one more than the highest"
        " of those that it needs: each partition is made after those that it needs."
    )
    selection = serializers.CharField()
    total = serializers.IntegerField()
    to_make = serializers.IntegerField()
    runs = serializers.IntegerField()
    existing = serializers.IntegerField(help_text="Left out, since they are there.")
    in_flight = serializers.IntegerField(help_text="Left out, since another run makes them.")
    in_flight_by = serializers.SerializerMethodField()
    missing_upstream = serializers.IntegerField(
        help_text="Left out, since what they need is not there and is not made here."
    )
    nonexistent_upstream = serializers.IntegerField(
        help_text="Of these, those that need partitions which do not exist at all."
    )
    upstream_gaps = UpstreamGapSerializer(
        source="gaps",
        many=True,
        help_text="Upstream assets of which partitions do not exist or are excluded.",
    )
    not_over = serializers.IntegerField(help_text="Beside the total: their windows have not ended.")
    materialized = serializers.IntegerField()
    failed = serializers.IntegerField()
    stale = serializers.IntegerField(
        help_text="Materialized and made again, since something that they read is newer or is made"
        " here: with `existing` `stale`, and of an asset that is not partitioned."
    )
    older_code = serializers.IntegerField(
        help_text="Materialized and made again, since older code has made them."
    )
    strategy = StrategyField()
    params = serializers.DictField()
    estimate = EstimateSerializer(allow_null=True)
    made_with = serializers.ListField(
        child=serializers.CharField(), help_text="Assets that its function makes as well."
    )

    def get_in_flight_by(self, planned: Any) -> list[dict[str, Any]]:
        holders = [
            {"backfill": backfill, "name": name, "partitions": number}
            for backfill, name, number in planned.in_flight_by
        ]
        return list(HeldBySerializer(holders, many=True).data)


class BackfillPlanSerializer(serializers.Serializer[Any]):
    """The plan of a backfill."""

    total = serializers.IntegerField(help_text="Partitions of all assets.")
    to_make = serializers.IntegerField(help_text="Of these, those that it would make.")
    runs = serializers.IntegerField(help_text="Runs that would be needed.")
    estimate = EstimateSerializer(allow_null=True, help_text="Null below three past runs.")
    first_key = serializers.CharField()
    last_key = serializers.CharField()
    first_label = serializers.CharField(help_text="What people are shown of the first key.")
    last_label = serializers.CharField(help_text="What people are shown of the last key.")
    selection = serializers.CharField()
    materialized = serializers.IntegerField(help_text="Of the first chosen asset: there.")
    failed = serializers.IntegerField(help_text="Of the first chosen asset: their last run failed.")
    in_flight = serializers.IntegerField(
        help_text="Of the first chosen asset: other runs hold them."
    )
    start_date = serializers.DateTimeField(help_text="Start of the first window, in UTC.")
    end_date = serializers.DateTimeField(help_text="End of the last window, not included.")
    strategy = StrategyField()
    code_version = CodeVersionSerializer(allow_null=True)
    refused = serializers.ListField(
        child=serializers.CharField(), help_text="What it will not do, in sentences."
    )
    assets = PlannedAssetSerializer(many=True, help_text="Upstream before downstream.")
