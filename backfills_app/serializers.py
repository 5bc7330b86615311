"""Backfills as JSON, for the API and for commands with ``--json``."""

from typing import Any

from rest_framework import serializers

from accounts_app.serializers import JSONObject, StrictSerializer, Text, Whole
from assets_app.serializers import StrategyField
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition, ExistingPolicy
from partitions_app.labels import label_of
from slicewise.uris import masked_text

COUNTS = ("total", "expanded", "waiting", "active", "succeeded", "failed", "canceled", "skipped")
_NO_POLICY = f"{{input!r}} is none of {', '.join(ExistingPolicy.values)}."


class BackfillRequestSerializer(StrictSerializer):
    """What to backfill: ``start`` and ``end`` name the first and last partition, both included."""

    asset = Text(max_length=250)
    start = Text(max_length=1000)
    end = Text(max_length=1000)
    description = Text(required=False, allow_blank=True)
    max_active_runs = Whole(required=False, help_text="How many of its runs may run at once.")
    strategy = StrategyField(required=False, allow_null=True)
    existing = serializers.ChoiceField(
        required=False,
        choices=ExistingPolicy.choices,
        error_messages={"invalid_choice": _NO_POLICY},
    )
    params = JSONObject(required=False)


class BackfillPlanSerializer(serializers.Serializer[Any]):
    """What a backfill would do."""

    total = serializers.IntegerField(help_text="Partitions in the range.")
    to_make = serializers.IntegerField(help_text="Of the range, those that it would make.")
    runs = serializers.IntegerField(help_text="Runs that would be needed.")
    first_key = serializers.CharField()
    last_key = serializers.CharField()
    first_label = serializers.CharField(help_text="What people are shown of the first key.")
    last_label = serializers.CharField(help_text="What people are shown of the last key.")
    selection = serializers.CharField()
    materialized = serializers.IntegerField(help_text="Of the range, those that are there.")
    failed = serializers.IntegerField(help_text="Of the range, those whose last run failed.")
    in_flight = serializers.IntegerField(help_text="Of the range, those that other runs hold.")
    start_date = serializers.DateTimeField(help_text="Start of the first window, in UTC.")
    end_date = serializers.DateTimeField(help_text="End of the last window, not included.")
    strategy = StrategyField()


class BackfillAssetSerializer(serializers.ModelSerializer[BackfillAsset]):
    """How one asset of a backfill stands."""

    asset = serializers.CharField(source="asset.name")

    class Meta:
        model = BackfillAsset
        fields: tuple[str, ...] = ("asset", *COUNTS)
        read_only_fields: tuple[str, ...] = fields


class BackfillSerializer(serializers.ModelSerializer[Backfill]):
    """A backfill, its counts summed over its assets and apart."""

    asset = serializers.CharField(source="asset.name")
    submitted_by = serializers.CharField(
        source="submitted_by.username", allow_null=True, default=None
    )
    strategy = StrategyField()
    group = serializers.IntegerField(source="group_id")
    counts = serializers.SerializerMethodField()
    assets = BackfillAssetSerializer(many=True)

    class Meta:
        model = Backfill
        fields: tuple[str, ...] = (
            "id", "name", "asset", "state", "description", "start_date", "end_date",
            "logical_dates", "params", "max_active_runs", "strategy", "existing", "group",
            "scheduled_date", "submitted_at", "submitted_by", "updated_at", "run_start_date",
            "run_end_date", "error", "counts", "assets",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_counts(self, backfill: Backfill) -> dict[str, int]:
        assets = list(backfill.assets.all())
        return {name: sum(getattr(asset, name) for asset in assets) for name in COUNTS}


class BackfillDetailSerializer(BackfillSerializer):
    """With the code as it was frozen at submission, but for passwords in it."""

    origin_code = serializers.SerializerMethodField()

    class Meta(BackfillSerializer.Meta):
        fields: tuple[str, ...] = (
            *BackfillSerializer.Meta.fields,
            "relative_fileloc",
            "origin_code",
        )
        read_only_fields: tuple[str, ...] = fields

    def get_origin_code(self, backfill: Backfill) -> str:
        return masked_text(backfill.origin_code)


class BackfillPartitionSerializer(serializers.ModelSerializer[BackfillPartition]):
    """One partition of a backfill: what became of it, and the run that makes it."""

    asset = serializers.CharField(source="backfill_asset.asset.name")
    label = serializers.SerializerMethodField()  # type: ignore[assignment]
    start = serializers.DateTimeField(source="window_start", allow_null=True)
    end = serializers.DateTimeField(source="window_end", allow_null=True)
    run = serializers.IntegerField(source="run_id", allow_null=True)

    class Meta:
        model = BackfillPartition
        fields: tuple[str, ...] = (
            "asset",
            "key",
            "label",
            "start",
            "end",
            "segment",
            "state",
            "reason",
            "run",
        )
        read_only_fields: tuple[str, ...] = fields

    def get_label(self, partition: BackfillPartition) -> str:
        return label_of(partition.backfill_asset.asset.definition, partition.key)
