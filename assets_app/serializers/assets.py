"""Serializers of assets, schedules and partitions, and of requests to materialize."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.models import (
    Asset,
    LateEffect,
    LateReason,
    PartitionState,
    ScheduleTick,
    ScheduleTruncation,
)
from assets_app.queries.clock import database_now
from assets_app.queries.overdue import NONE_LATE, LateCounts, freshness_of
from assets_app.queries.ticks import truncations_of
from assets_app.scheduling.descriptions import describe_schedule
from assets_app.scheduling.missed import missed_by
from slicewise.partitions import LONGEST_SELECTION
from slicewise.texts import masked_json, masked_uri
from slicewise_server.web.api.serializers import (
    JSONObject,
    MaskedText,
    StrictSerializer,
    TextField,
    UtcDateTimeField,
    json_kind,
)

# The settled states, and the states of a partition that a run holds.
_STATES = (*PartitionState.values, "queued", "running")


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": ["partition", "range"]},
            {"type": "integer", "minimum": 1},
        ],
        "description": "`partition`: one run per partition; `range`: one run for all partitions; a"
        " number: at most that many partitions per run; null: the strategy of the"
        " asset.",
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
    failures = serializers.IntegerField(help_text="Number of consecutive failures.")
    since = UtcDateTimeField(source="failing_since")
    retry_at = UtcDateTimeField(help_text="Time of the next try.")


class ScheduleSerializer(serializers.Serializer[Any]):
    """The schedule of an asset."""

    text = serializers.CharField(
        help_text="The schedule as text: `@daily`, `hourly & daily`, `raw | Cron('@daily')`."
    )
    rule = serializers.DictField(
        help_text="The declared `schedule`, with `timezone`, `start` and `end`; `start` and"
        " `end` may be null."
    )
    by_time = serializers.BooleanField(
        source="row.by_time",
        help_text="True for a schedule by time alone; false for a schedule by other assets,"
        " with or without times.",
    )
    next_at = serializers.DateTimeField(
        source="row.next_at",
        allow_null=True,
        help_text="The next tick, or the next try after a failure; null while the asset is paused,"
        " after the end of the schedule, and for a schedule without a time.",
    )
    handled_until = serializers.DateTimeField(
        source="row.handled_until",
        help_text="For a schedule by time: partitions whose window ended before this time are not"
        " due, except partitions that `refresh` materializes again. With any other"
        " schedule, `After` and upstream writes may still make such partitions due.",
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
    """A tick of a schedule with a time.

    A row with `count` above 1 stands for consecutive ticks that queued nothing for one reason, or
    for all ticks since the last handled tick, for example after the server was down.
    """

    runs_url = serializers.SerializerMethodField(
        help_text="Address of the runs that the tick queued."
    )

    class Meta:
        model = ScheduleTick
        fields: tuple[str, ...] = (
            "id", "at", "last_at", "count", "reason", "queued", "existing", "in_flight",
            "superseded", "runs_url",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_runs_url(self, tick: ScheduleTick) -> str:
        return f"{reverse('api:runs')}?tick={tick.pk}"


class ScheduleTruncationSerializer(serializers.ModelSerializer[ScheduleTruncation]):
    """Partitions of one upstream write or one tick that were not examined: the oldest of too many.

    The schedule does not queue these partitions later. A backfill from `start` to `end`
    materializes the partitions, with `existing` `stale`, or `all` after a truncation of `refresh`.
    `start` and `end` are empty for an asset without time.
    """

    class Meta:
        model = ScheduleTruncation
        fields: tuple[str, ...] = ("at", "count", "queued", "first", "last", "start", "end")
        read_only_fields: tuple[str, ...] = fields
        extra_kwargs: Mapping[str, dict[str, str]] = {
            "count": {"help_text": "Number of partitions that were not examined."},
            "queued": {"help_text": "Number of the newest partitions, which were examined."},
        }


class MissedSerializer(serializers.Serializer[Any]):
    """Partitions that the schedule would have materialized while the asset was paused. Slicewise
    does not materialize these partitions by itself.
    """

    count = serializers.IntegerField()
    first = serializers.CharField(help_text="Empty for an asset that is not partitioned.")
    last = serializers.CharField()
    selection = serializers.CharField(
        help_text="Selection of exactly the missed partitions, for a backfill, with `existing`"
        " `stale` if the schedule has assets. Empty for an asset without partitions, if the text"
        " would be too long, and for a schedule by time with more than 20,000 partitions of that"
        " span materialized or in progress."
    )
    is_all = serializers.BooleanField(
        help_text="False if older partitions, which were not examined, may have been missed as"
        " well."
    )


class FreshnessSerializer(serializers.Serializer[Any]):
    """The time after a window by which each partition is to be there."""

    within = serializers.IntegerField(help_text="Seconds until a partition is overdue.")
    warn = serializers.IntegerField(
        allow_null=True,
        default=None,
        read_only=True,
        help_text="Seconds until a partition is late, if declared.",
    )


class AssetSerializer(serializers.ModelSerializer[Asset]):
    """An asset as a line of a list. ``counts`` are numbers of partitions by settled state;
    a partition in progress counts only if it is materialized."""

    bundle = serializers.CharField(source="bundle.name")
    owners = serializers.ListField(child=serializers.CharField(), read_only=True)
    tags = serializers.ListField(child=serializers.CharField(), read_only=True)
    uri = serializers.SerializerMethodField()
    canonical_uri = serializers.SerializerMethodField()
    partition = serializers.SerializerMethodField()
    schedule = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    in_flight = serializers.SerializerMethodField()
    overdue = serializers.SerializerMethodField(
        help_text="Number of partitions without data later than `freshness` after the end of"
        " the window."
    )
    late = serializers.SerializerMethodField(
        help_text="Number of partitions without data after the earlier mark of `freshness`, and"
        " not overdue yet."
    )

    class Meta:
        model = Asset
        fields: tuple[str, ...] = (
            "name", "bundle", "description", "kind", "group", "owners", "tags", "uri",
            "canonical_uri", "schedule", "partition", "paused", "active", "counts", "in_flight",
            "overdue", "late",
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

    def get_overdue(self, asset: Asset) -> int:
        overdue: int = self._late(asset).overdue
        return overdue

    def get_late(self, asset: Asset) -> int:
        late: int = self._late(asset).late
        return late

    def _late(self, asset: Asset) -> LateCounts:
        late: dict[int, LateCounts] = self.context["late"]
        return late.get(asset.pk, NONE_LATE)


class ColumnSerializer(serializers.Serializer[Any]):
    """A declared column."""

    name = serializers.CharField()
    type = serializers.CharField(allow_null=True, help_text="As declared; null without a type.")


class DeclaredAlertSerializer(serializers.Serializer[Any]):
    """A declared alert: the kinds of events that a channel gets."""

    kinds = serializers.ListField(
        child=serializers.CharField(), help_text="All kinds of an asset's events if empty."
    )
    to = serializers.CharField(help_text="Name of the channel.")
    gather_seconds = serializers.IntegerField()


class AssetDetailSerializer(AssetSerializer):
    """An asset with columns, neighbours, and the number of partitions that should exist by now."""

    columns = ColumnSerializer(
        many=True, read_only=True, allow_null=True, help_text="Null without declared columns."
    )
    alerts = DeclaredAlertSerializer(many=True, read_only=True)
    expected = serializers.SerializerMethodField()
    upstream = serializers.SerializerMethodField()
    downstream = serializers.SerializerMethodField()
    params = serializers.SerializerMethodField()
    truncations = serializers.SerializerMethodField()
    missed = serializers.SerializerMethodField(
        help_text="Partitions missed while the asset was paused; null if no partition was missed."
    )
    materialized_with = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="Assets that the same function writes: a run of one asset holds the"
        " partitions of all.",
    )

    freshness = serializers.SerializerMethodField(
        help_text="Limits in seconds after the end of a window; null without `freshness`."
    )

    class Meta(AssetSerializer.Meta):
        fields: tuple[str, ...] = (
            *AssetSerializer.Meta.fields,
            "columns", "alerts", "activated_at", "expected", "upstream", "downstream", "params",
            "materialized_with", "truncations", "missed", "freshness",
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

    @extend_schema_field(FreshnessSerializer(allow_null=True))
    def get_freshness(self, asset: Asset) -> dict[str, Any] | None:
        freshness = freshness_of(asset)
        return None if freshness is None else FreshnessSerializer(freshness).data

    @extend_schema_field(ScheduleTruncationSerializer(many=True))
    def get_truncations(self, asset: Asset) -> Any:
        return ScheduleTruncationSerializer(truncations_of(asset), many=True).data

    @extend_schema_field(MissedSerializer(allow_null=True))
    def get_missed(self, asset: Asset) -> dict[str, Any] | None:
        missed = missed_by(asset, database_now())
        return None if missed is None else MissedSerializer(missed).data

    def get_params(self, asset: Asset) -> dict[str, Any]:
        version = asset.producer.current_version if asset.producer else None
        params: dict[str, Any] = masked_json(dict(version.spec.params)) if version else {}
        return params


class LateInputSerializer(serializers.Serializer[Any]):
    """An upstream asset that was missing or old when a partition was made."""

    asset = serializers.CharField(source="asset.name")
    reason = serializers.ChoiceField(choices=LateReason.choices)
    effect = serializers.ChoiceField(
        choices=LateEffect.choices, help_text="Effect of the input when data arrives."
    )
    missing = serializers.IntegerField(
        help_text="Number of missing partitions of the upstream asset."
    )
    keys = serializers.ListField(
        child=serializers.CharField(allow_blank=True), help_text="The first missing partitions."
    )
    newest_at = UtcDateTimeField(
        allow_null=True, help_text="Time of materialization of the newest needed partition."
    )


class PartitionSerializer(serializers.Serializer[Any]):
    """One partition that the definition has, with or without a record."""

    key = serializers.CharField()
    label = serializers.CharField(help_text="The key as pages show the key: `2024-W05`.")  # type: ignore[assignment]
    start = UtcDateTimeField(allow_null=True, help_text="Start of the window, in UTC.")
    end = UtcDateTimeField(allow_null=True, help_text="End of the window, not included, in UTC.")
    segment = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=_STATES)
    version = serializers.IntegerField(
        help_text="Number of the present version; 0 for a partition that is missing."
    )
    run = serializers.IntegerField(
        allow_null=True,
        help_text="The run that holds the partition, else the last run of the partition.",
    )
    rows = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    materialized_at = UtcDateTimeField(allow_null=True)
    stale = serializers.BooleanField(
        help_text="Whether an upstream partition has a newer version than the version that was"
        " read."
    )
    reason = serializers.CharField(
        help_text="The reason for the state: `Waiting for 2 of 24 of hourly: …`."
    )
    lateness = serializers.ChoiceField(
        choices=["", "late", "overdue"],
        help_text="`overdue` without data later than `freshness` after the end of the window;"
        " `late` from the earlier mark on.",
    )
    overdue_at = UtcDateTimeField(
        allow_null=True,
        help_text="Time from which the partition is overdue; null unless the partition is late"
        " or overdue.",
    )
    late_inputs = LateInputSerializer(
        many=True,
        help_text="Upstream assets that were missing or old when the partition was materialized.",
    )


class MaterializeSerializer(StrictSerializer):
    """The partitions to materialize, with params and strategy."""

    selection = TextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_SELECTION,
        help_text="Text of the selection grammar; empty for an asset that is not partitioned, or"
        " to discover runtime partitions.",
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
        child=serializers.CharField(),
        help_text="Keys that were left out, because another run is materializing the partitions.",
    )
    earlier_missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="With `depends_on_past`: missing partitions before the requested partitions."
        " The request materializes the requested partitions anyway.",
    )
