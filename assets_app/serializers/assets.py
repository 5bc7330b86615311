"""Serializers of assets, schedules and partitions, and of requests to materialize."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.models import Asset, LeftOut, ScheduleTick
from assets_app.queries.clock import database_now
from assets_app.queries.ticks import left_out_of
from assets_app.scheduling.descriptions import describe_schedule
from assets_app.scheduling.missed import missed_by
from slicewise.partitions import LONGEST_SELECTION
from slicewise.texts import masked_uri
from slicewise_server.web.api.serializers import (
    JSONObject,
    MaskedText,
    StrictSerializer,
    TextField,
    UtcDateTimeField,
    json_kind,
)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": ["partition", "range"]},
            {"type": "integer", "minimum": 1},
            {"type": "null"},
        ],
        "description": "A run per partition, one run for all, or at most so many per run;"
        " as the asset declares it unless told.",
    }
)
class StrategyField(serializers.Field[Any, Any, Any, Any]):
    """A strategy in any form; the service decides which numbers and words are valid."""

    def to_internal_value(self, data: Any) -> str | int:
        if isinstance(data, bool) or not isinstance(data, str | int):
            raise serializers.ValidationError(
                f"This must be partition, range, or a whole number, not {json_kind(data)}."
            )
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class ScheduleFailureSerializer(serializers.Serializer[Any]):
    """The error that keeps a schedule from computing due partitions, and the time of the retry."""

    error = MaskedText()
    failures = serializers.IntegerField(help_text="How often in a row.")
    since = UtcDateTimeField(source="failing_since")
    retry_at = UtcDateTimeField(help_text="When it is tried again.")


class ScheduleSerializer(serializers.Serializer[Any]):
    """The schedule of an asset."""

    text = serializers.CharField(
        help_text="As people write it: `@daily`, `hourly & daily`, `raw | Cron('@daily')`."
    )
    rule = serializers.JSONField(
        help_text="`schedule` as declared, with `timezone`, `start` and `end`, which may be null."
    )
    by_time = serializers.BooleanField(
        source="row.by_time",
        help_text="Whether it is a time alone; else it follows other assets, and may join times.",
    )
    next_at = serializers.DateTimeField(
        source="row.next_at",
        allow_null=True,
        help_text="The next tick; null while it is paused, and without a time in the schedule.",
    )
    handled_until = serializers.DateTimeField(
        source="row.handled_until", help_text="What ended before is not due by itself."
    )
    paused = serializers.BooleanField(source="asset.paused")
    failure = serializers.SerializerMethodField(
        help_text="The error that keeps the schedule from making due partitions, or null."
    )

    @extend_schema_field(ScheduleFailureSerializer(allow_null=True))
    def get_failure(self, schedule: Any) -> dict[str, Any] | None:
        row = schedule.row
        return ScheduleFailureSerializer(row).data if row.failures else None


class TickSerializer(serializers.ModelSerializer[ScheduleTick]):
    """A tick of a schedule with a time, or consecutive ticks that queued nothing for one reason."""

    runs_url = serializers.SerializerMethodField(help_text="The runs that it asked for.")

    class Meta:
        model = ScheduleTick
        fields: tuple[str, ...] = (
            "id", "at", "last_at", "count", "reason", "queued", "existing", "in_flight",
            "passed_over", "runs_url",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_runs_url(self, tick: ScheduleTick) -> str:
        return f"{reverse('api:runs')}?tick={tick.pk}"


class LeftOutSerializer(serializers.ModelSerializer[LeftOut]):
    """Due partitions of one upstream write or one tick that were not queued: the oldest of too
    many.

    Slicewise does not materialize these partitions by itself; a backfill from `start` to `end`
    does.
    """

    class Meta:
        model = LeftOut
        fields: tuple[str, ...] = ("at", "count", "queued", "first", "last", "start", "end")
        read_only_fields: tuple[str, ...] = fields


class MissedSerializer(serializers.Serializer[Any]):
    """Partitions that the schedule would have materialized while the asset was paused. Slicewise
    does not materialize these partitions by itself.
    """

    count = serializers.IntegerField()
    first = serializers.CharField(help_text="Empty for an asset that is not partitioned.")
    last = serializers.CharField()
    selection = serializers.CharField(
        help_text="Names just these, for a backfill; empty where that would be too long."
    )
    is_all = serializers.BooleanField(
        help_text="False where there may be more, older than the partitions that are looked at."
    )


class AssetSerializer(serializers.ModelSerializer[Asset]):
    """An asset as a line of a list. ``counts`` are numbers of partitions by settled state."""

    bundle = serializers.CharField(source="bundle.name")
    uri = serializers.SerializerMethodField()
    canonical_uri = serializers.SerializerMethodField()
    partition = serializers.SerializerMethodField()
    schedule = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    in_flight = serializers.SerializerMethodField()

    class Meta:
        model = Asset
        fields: tuple[str, ...] = (
            "name", "bundle", "description", "kind", "group", "owners", "tags", "uri",
            "canonical_uri", "schedule", "partition", "paused", "active", "counts", "in_flight",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_uri(self, asset: Asset) -> str:
        return masked_uri(asset.uri)

    def get_canonical_uri(self, asset: Asset) -> str:
        return masked_uri(asset.canonical_uri)

    def get_partition(self, asset: Asset) -> dict[str, Any] | None:
        row = asset.partition_definition
        return None if row is None else row.spec

    @extend_schema_field(ScheduleSerializer(allow_null=True))
    def get_schedule(self, asset: Asset) -> dict[str, Any] | None:
        schedule = describe_schedule(asset)
        return None if schedule is None else ScheduleSerializer(schedule).data

    def get_counts(self, asset: Asset) -> dict[str, int]:
        counts: dict[str, int] = self.context["counts"].settled(asset)
        return counts

    def get_in_flight(self, asset: Asset) -> int:
        in_flight_count: int = self.context["counts"].held(asset)
        return in_flight_count


class AssetDetailSerializer(AssetSerializer):
    """An asset with columns, neighbours, and the number of partitions that should exist by now."""

    expected = serializers.SerializerMethodField()
    upstream = serializers.SerializerMethodField()
    downstream = serializers.SerializerMethodField()
    params = serializers.SerializerMethodField()
    left_out = serializers.SerializerMethodField()
    missed = serializers.SerializerMethodField(
        help_text="What was missed while it was paused; null where nothing was."
    )
    made_with = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="Assets that the same run makes: while it makes one, it holds all.",
    )

    class Meta(AssetSerializer.Meta):
        fields: tuple[str, ...] = (
            *AssetSerializer.Meta.fields,
            "columns", "activated_at", "expected", "upstream", "downstream", "params",
            "made_with", "left_out", "missed",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_expected(self, asset: Asset) -> int | None:
        expected: int | None = self.context["expected"]
        return expected

    def get_upstream(self, asset: Asset) -> list[str]:
        return sorted(
            edge.upstream.name for edge in asset.upstream_edges.select_related("upstream")
        )

    def get_downstream(self, asset: Asset) -> list[str]:
        edges = asset.downstream_edges.filter(downstream__active=True).select_related("downstream")
        return sorted(edge.downstream.name for edge in edges)

    @extend_schema_field(LeftOutSerializer(many=True))
    def get_left_out(self, asset: Asset) -> Any:
        return LeftOutSerializer(left_out_of(asset), many=True).data

    @extend_schema_field(MissedSerializer(allow_null=True))
    def get_missed(self, asset: Asset) -> dict[str, Any] | None:
        missed = missed_by(asset, database_now())
        return None if missed is None else MissedSerializer(missed).data

    def get_params(self, asset: Asset) -> dict[str, Any]:
        version = asset.producer.current_version if asset.producer else None
        return dict(version.spec.params) if version else {}


class PartitionSerializer(serializers.Serializer[Any]):
    """One partition that should exist, with or without a record."""

    key = serializers.CharField()
    label = serializers.CharField(help_text="What people are shown of the key: `2024-W05`.")  # type: ignore[assignment]
    start = UtcDateTimeField(allow_null=True, help_text="Start of its window, in UTC.")
    end = UtcDateTimeField(allow_null=True, help_text="End of its window, not included.")
    segment = serializers.CharField(allow_blank=True)
    state = serializers.CharField()
    version = serializers.IntegerField(help_text="How often it has been materialized.")
    run = serializers.IntegerField(allow_null=True, help_text="The run that holds it, or the last.")
    rows = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    materialized_at = UtcDateTimeField(allow_null=True)
    stale = serializers.BooleanField(
        help_text="Whether something it was made from has been made again since."
    )


class MaterializeSerializer(StrictSerializer):
    """The partitions to materialize, with params and strategy."""

    selection = TextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_SELECTION,
        help_text="Text of the selection grammar; empty for an asset that is not partitioned.",
    )
    params = JSONObject(required=False, default=dict)
    strategy = StrategyField(required=False, allow_null=True, default=None)


class RequestSerializer(serializers.Serializer[Any]):
    """The result of a request, with the first hundred runs; all runs are at ``runs_url``."""

    group = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, gathered by DRF
    run_count = serializers.IntegerField()
    partition_count = serializers.IntegerField()
    runs = serializers.ListField(child=serializers.IntegerField())
    runs_url = serializers.CharField()
    in_flight = serializers.ListField(
        child=serializers.CharField(), help_text="Keys left out since another run makes them."
    )
    earlier_missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="With `depends_on_past`: keys before these that are not there. They are made all"
        " the same.",
    )
