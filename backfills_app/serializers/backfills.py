"""Backfills as JSON: their status, their partitions, and their outcome."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.queries.clock import database_now
from assets_app.serializers import CodeVersionSerializer, StrategyField
from backfills_app.models import AssetRole, Backfill, BackfillAsset, BackfillPartition
from backfills_app.queries.counts import counts_of
from backfills_app.queries.pace import Pace, paces_of
from backfills_app.queries.pauses import Pause, pauses_of
from backfills_app.serializers.requests import DownstreamField
from partitions_app.labels import label_of
from slicewise.texts import masked_text
from slicewise_server.web.api.serializers import MaskedJSON, MaskedText

COUNTS = ("total", "expanded", "waiting", "active", "succeeded", "failed", "canceled", "skipped")


class BackfillAssetSerializer(serializers.ModelSerializer[BackfillAsset]):
    """One asset of a backfill: its status, its code and its settings."""

    asset = serializers.CharField(source="asset.name")
    version = serializers.CharField(source="producer_version.digest")
    strategy = StrategyField()
    params = MaskedJSON()

    class Meta:
        model = BackfillAsset
        fields: tuple[str, ...] = (
            "asset",
            "role",
            "selection",
            "version",
            "strategy",
            "params",
            *COUNTS,
        )
        read_only_fields: tuple[str, ...] = fields


class ProgressSerializer(serializers.Serializer[Any]):
    """The progress of a backfill, and its recent rate."""

    summary = serializers.CharField(
        help_text="Numbers of partitions materialized, failed, canceled and skipped, as text."
    )
    made = serializers.IntegerField(help_text="Number of materialized partitions.")
    percent_made = serializers.IntegerField(
        help_text="Percentage of all partitions that are materialized, rounded down: 100 means all."
    )
    done = serializers.IntegerField(
        help_text="Number of partitions that are materialized, failed, canceled or skipped."
    )
    percent = serializers.IntegerField(
        help_text="Percentage of all partitions that are done, rounded down: 100 means all."
    )
    running = serializers.IntegerField(
        help_text="Number of runs that occupy a slot, also while the backfill is paused; more than"
        " `max_active_runs` only after that limit was lowered."
    )
    queued = serializers.IntegerField(help_text="Number of runs that wait for a slot.")
    per_second = serializers.FloatField(
        allow_null=True,
        help_text="Partitions per second; null if too few were materialized or failed.",
    )
    seconds_left = serializers.FloatField(
        allow_null=True,
        help_text="Estimated seconds until the end, at the rate of `per_second`; null if the"
        " rate is unknown, after the end, and while the backfill is paused with no run at work.",
    )


class CountsSerializer(serializers.Serializer[Any]):
    """The number of partitions by state."""

    total = serializers.IntegerField()
    expanded = serializers.IntegerField(
        help_text="Number of partitions with a row in the database."
    )
    waiting = serializers.IntegerField(help_text="Number of partitions without a run.")
    active = serializers.IntegerField(
        help_text="Number of partitions whose run is queued or running. A queued run occupies"
        " no slot."
    )
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    canceled = serializers.IntegerField()
    skipped = serializers.IntegerField()


class ChosenBySerializer(serializers.Serializer[Any]):
    """How the assets and the partitions of a backfill were chosen, as in the request."""

    assets = serializers.ListField(child=serializers.CharField(), required=False)
    asset_group = serializers.CharField(required=False)
    asset_tag = serializers.CharField(required=False)
    start = serializers.CharField(required=False)
    end = serializers.CharField(required=False)
    selection = serializers.CharField(required=False)
    upstream = serializers.BooleanField(required=False)
    downstream = DownstreamField(required=False)


class BackfillSerializer(serializers.ModelSerializer[Backfill]):
    """A backfill, with the counts summed over its assets and for each asset."""

    asset = serializers.CharField(
        source="asset.name", help_text="The first chosen asset; all are in `assets`."
    )
    title = serializers.CharField(
        help_text="The chosen assets as text: the name of one asset, `group G`, `tag T`, or `a,"
        " b and 3 more`."
    )
    submitted_by = serializers.CharField(
        source="submitted_by.username", allow_null=True, default=None, read_only=True
    )
    strategy = StrategyField()
    group = serializers.IntegerField(source="group_id", help_text="The run group of the backfill.")
    priority = serializers.IntegerField(source="group.priority")
    params = MaskedJSON()
    error = MaskedText()
    stalled_error = MaskedText()
    paused = serializers.BooleanField()
    paused_by = serializers.SerializerMethodField(
        help_text="The name of the person who paused the backfill; null unless the backfill is"
        " paused."
    )
    paused_at = serializers.SerializerMethodField(
        help_text="The time of the pause; null unless the backfill is paused."
    )
    code_version = CodeVersionSerializer(allow_null=True)
    chosen_by = ChosenBySerializer(help_text="Empty for partitions of one asset.")
    upstream = serializers.SerializerMethodField(
        help_text="Assets that the backfill materializes as well, because chosen assets depend"
        " on these assets."
    )
    downstream = serializers.SerializerMethodField(
        help_text="Assets that the backfill materializes as well, because these assets depend"
        " on chosen assets."
    )
    counts = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()
    assets = BackfillAssetSerializer(many=True)

    class Meta:
        model = Backfill
        fields: tuple[str, ...] = (
            "id", "name", "title", "asset", "state", "paused", "paused_by", "paused_at",
            "description", "start_date", "end_date", "logical_dates", "params",
            "max_active_runs", "priority", "order", "strategy", "allow_holes",
            "existing", "chosen_by", "upstream", "downstream", "code_version",
            "relative_fileloc", "group",
            "scheduled_date", "submitted_at", "submitted_by", "updated_at", "run_start_date",
            "run_end_date", "deleted", "delete_date", "error", "stalled_since",
            "stalled_error", "try_again_at", "counts", "progress", "assets",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields
        extra_kwargs: Mapping[str, dict[str, str]] = {
            "start_date": {"help_text": "Start of the first window."},
            "end_date": {"help_text": "End of the last window, not included."},
            "logical_dates": {"help_text": "The partitions of `asset`, as a selection."},
            "relative_fileloc": {"help_text": "Path of the definition file within the bundle."},
            "scheduled_date": {
                "help_text": "Earliest start of a run, `start_at` of the request; null for at once."
            },
            "run_start_date": {"help_text": "Start of the first run."},
            "run_end_date": {"help_text": "End of the backfill."},
        }

    def get_paused_by(self, backfill: Backfill) -> str | None:
        pause = self._pause(backfill)
        return pause.paused_by if pause else None

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_paused_at(self, backfill: Backfill) -> Any:
        pause = self._pause(backfill)
        return serializers.DateTimeField().to_representation(pause.paused_at) if pause else None

    def get_upstream(self, backfill: Backfill) -> list[str]:
        return _names_of(backfill, AssetRole.UPSTREAM)

    def get_downstream(self, backfill: Backfill) -> list[str]:
        return _names_of(backfill, AssetRole.DOWNSTREAM)

    @extend_schema_field(CountsSerializer)
    def get_counts(self, backfill: Backfill) -> dict[str, int]:
        assets = list(backfill.assets.all())
        return {name: sum(getattr(asset, name) for asset in assets) for name in COUNTS}

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, backfill: Backfill) -> Any:
        counts = counts_of(backfill.assets.all())
        pace = self._pace(backfill)
        is_idle = backfill.ended or (backfill.group.paused and not pace.running)
        has_time_left = pace.per_second and not is_idle
        return ProgressSerializer(
            {
                "summary": counts.text,
                "made": counts.succeeded,
                "percent_made": counts.percent_made,
                "done": counts.ended,
                "percent": counts.percent_done,
                "running": pace.running,
                "queued": pace.queued,
                "per_second": pace.per_second,
                "seconds_left": counts.left / pace.per_second
                if has_time_left and pace.per_second
                else None,
            }
        ).data

    def _pace(self, backfill: Backfill) -> Pace:
        """Return the pace of a backfill; the paces of a list are read at once."""
        paces: dict[int, Pace] = self.__dict__.setdefault("_paces", {})
        if backfill.pk not in paces:
            paces |= paces_of(self._shown(backfill), database_now())
        return paces[backfill.pk]

    def _pause(self, backfill: Backfill) -> Pause | None:
        """Return the pause of a backfill; the pauses of a list are read at once."""
        pauses: dict[int, Pause] | None = self.__dict__.get("_pauses")
        if pauses is None:
            pauses = self.__dict__["_pauses"] = pauses_of(self._shown(backfill))
        return pauses.get(backfill.pk)

    def _shown(self, backfill: Backfill) -> list[Backfill]:
        """Return all backfills of the answer."""
        shown = self.instance if self.parent is None else self.parent.instance
        return [shown] if isinstance(shown, Backfill) else list(shown or [backfill])


def _names_of(backfill: Backfill, role: AssetRole) -> list[str]:
    return [asset_row.asset.name for asset_row in backfill.assets.all() if asset_row.role == role]


class BackfillDetailSerializer(BackfillSerializer):
    """A backfill with the code as frozen at submission, without passwords."""

    origin_code = serializers.SerializerMethodField()

    class Meta(BackfillSerializer.Meta):
        fields: tuple[str, ...] = (*BackfillSerializer.Meta.fields, "origin_code")
        read_only_fields: tuple[str, ...] = fields

    def get_origin_code(self, backfill: Backfill) -> str:
        return masked_text(backfill.origin_code)


class BackfillPartitionSerializer(serializers.ModelSerializer[BackfillPartition]):
    """One partition of a backfill: its outcome, and the run that materializes the partition."""

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
