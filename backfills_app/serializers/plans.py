"""The plan of a backfill as JSON, with the plan of each asset."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.serializers import CodeVersionSerializer, StrategyField
from backfills_app.models import AssetRole
from partitions_app.rules import nonexistent_json


class EstimateSerializer(serializers.Serializer[Any]):
    """The estimated duration, by past runs."""

    seconds = serializers.FloatField()
    low = serializers.FloatField(help_text="Seconds by the lower quartile of past runs.")
    high = serializers.FloatField(help_text="Seconds by the upper quartile of past runs.")
    runs_seen = serializers.IntegerField()


class HeldBySerializer(serializers.Serializer[Any]):
    """A backfill, or another run, that materializes partitions of the asset at this moment."""

    backfill = serializers.IntegerField(
        source="backfill_id",
        allow_null=True,
        help_text="Number of the backfill; null for a run outside backfills.",
    )
    name = serializers.CharField()
    partitions = serializers.IntegerField(source="partition_count")


class NonexistentSerializer(serializers.Serializer[Any]):
    """The number of partitions that do not exist, with the first and the last."""

    partitions = serializers.IntegerField()
    first = serializers.CharField(help_text="Key of the first partition.")
    last = serializers.CharField(help_text="Key of the last partition.")


class RemovedPartitionsSerializer(serializers.Serializer[Any]):
    """The number of partitions that a definition no longer has, with the first and the last."""

    partitions = serializers.IntegerField()
    first = serializers.CharField(help_text="Key of the first partition.")
    last = serializers.CharField(help_text="Key of the last partition.")


class UpstreamGapSerializer(serializers.Serializer[Any]):
    """The partitions of an upstream asset that do not exist, or that the asset excludes."""

    asset = serializers.CharField()
    nonexistent = serializers.SerializerMethodField(
        help_text="Needed partitions that do not exist; null without such partitions."
    )
    removed = RemovedPartitionsSerializer(
        allow_null=True,
        help_text="Needed partitions that the definition of the upstream asset no longer has;"
        " null without such partitions.",
    )
    excluded = serializers.IntegerField(
        help_text="Number of excluded partitions, which are not needed."
    )
    reason = serializers.CharField(
        help_text="The nonexistent partitions as text; empty without nonexistent partitions."
    )
    excluded_text = serializers.CharField(help_text="The excluded partitions as text.")

    @extend_schema_field(NonexistentSerializer(allow_null=True))
    def get_nonexistent(self, upstream_gap: Any) -> dict[str, Any] | None:
        return nonexistent_json(upstream_gap.nonexistent)


class MissingUpstreamSerializer(serializers.Serializer[Any]):
    """The missing partitions of an upstream asset: the number, with the first and the last."""

    asset = serializers.CharField(source="asset.name")
    partitions = serializers.IntegerField(
        help_text="0 if any partition is enough and none is materialized."
    )
    first = serializers.CharField(
        help_text="Key of the first partition; empty for an asset that is not partitioned."
    )
    last = serializers.CharField(
        help_text="Key of the last partition; empty for an asset that is not partitioned."
    )


class PlannedAssetSerializer(serializers.Serializer[Any]):
    """The plan of a backfill for one asset. Numbers count partitions, except `runs`."""

    asset = serializers.CharField(source="asset.name")
    version = serializers.CharField(
        source="version.digest",
        help_text="Digest of the code version that the backfill would freeze.",
    )
    role = serializers.ChoiceField(
        choices=AssetRole.choices, help_text="The reason why the backfill includes the asset."
    )
    layer = serializers.IntegerField(
        help_text="1 for an asset that needs no other asset of the backfill, else one more than"
        " the highest layer of the needed assets. Upstream partitions are materialized"
        " before downstream partitions."
    )
    selection = serializers.CharField()
    total = serializers.IntegerField()
    to_materialize = serializers.IntegerField()
    runs = serializers.IntegerField()
    existing = serializers.IntegerField(
        help_text="Number of partitions that `existing` skips: materialized ones, and"
        " with `missing` also failed ones."
    )
    in_flight = serializers.IntegerField(
        help_text="Number of partitions skipped because another run is materializing the"
        " partitions."
    )
    in_flight_by = HeldBySerializer(many=True)
    upstream_missing = serializers.IntegerField(
        help_text="Number of partitions skipped because upstream data is missing and the"
        " backfill does not materialize the upstream data."
    )
    missing_by_asset = MissingUpstreamSerializer(
        many=True,
        help_text="Missing upstream partitions for which the backfill skips partitions, by"
        " upstream asset.",
    )
    upstream_nonexistent = serializers.IntegerField(
        help_text="Number of partitions among `upstream_missing` that need nonexistent partitions."
    )
    upstream_gaps = UpstreamGapSerializer(
        many=True,
        help_text="Upstream assets with nonexistent or excluded partitions.",
    )
    not_ended = serializers.IntegerField(
        help_text="Number of partitions whose window has not ended. `total` does not count"
        " these partitions.",
    )
    materialized = serializers.IntegerField()
    failed = serializers.IntegerField()
    stale = serializers.IntegerField(
        help_text="Number of materialized partitions that the backfill materializes again,"
        " because upstream data is newer or the backfill materializes upstream data:"
        " with `existing` `stale`, and for an asset that is not partitioned."
    )
    older_code = serializers.IntegerField(
        help_text="Number of materialized partitions that the backfill materializes again,"
        " because an older code version materialized the partitions."
    )
    strategy = StrategyField()
    params = serializers.DictField()
    estimate = EstimateSerializer(allow_null=True)
    materialized_with = serializers.ListField(
        child=serializers.CharField(), help_text="Other assets that the same function writes."
    )


class BackfillPlanSerializer(serializers.Serializer[Any]):
    """The plan of a backfill."""

    total = serializers.IntegerField(help_text="Number of partitions of all assets.")
    to_materialize = serializers.IntegerField(
        help_text="Number of partitions that the backfill would materialize."
    )
    runs = serializers.IntegerField(help_text="Number of runs that the backfill would create.")
    estimate = EstimateSerializer(
        allow_null=True,
        help_text="Estimated duration; null unless each asset with runs to create has three"
        " succeeded runs of about as many partitions.",
    )
    first_key = serializers.CharField()
    last_key = serializers.CharField()
    first_label = serializers.CharField(help_text="The first key as pages show the key.")
    last_label = serializers.CharField(help_text="The last key as pages show the key.")
    selection = serializers.CharField()
    materialized = serializers.IntegerField(
        help_text="Number of materialized partitions of the first chosen asset."
    )
    failed = serializers.IntegerField(
        help_text="Number of failed partitions of the first chosen asset."
    )
    in_flight = serializers.IntegerField(
        help_text="Number of partitions of the first chosen asset that other runs hold."
    )
    start_date = serializers.DateTimeField(help_text="Start of the first window, in UTC.")
    end_date = serializers.DateTimeField(help_text="End of the last window, not included, in UTC.")
    strategy = StrategyField()
    code_version = CodeVersionSerializer(allow_null=True)
    refused = serializers.ListField(
        child=serializers.CharField(),
        help_text="Sentences with the parts of the request that the backfill refuses.",
    )
    assets = PlannedAssetSerializer(
        many=True, help_text="Plans of all assets, upstream assets first."
    )
