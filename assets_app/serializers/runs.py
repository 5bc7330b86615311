"""Serializers of runs, attempts, logs and validations."""

from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.models import (
    AttemptStep,
    BundleVersion,
    ProducerVersion,
    Run,
    RunAttempt,
    RunPartition,
    StepKind,
    ValidationResult,
)
from assets_app.queries.lookups import partitions_of_run
from assets_app.queries.pages import validations_of
from slicewise.texts import masked_json, masked_text
from slicewise_server.web.api.pages import encode_cursor
from slicewise_server.web.api.serializers import MODEL_FIELDS, MaskedJSON, MaskedText

MOST_VALIDATIONS = 1000
MOST_PARTITIONS = 1000


class AttemptStepSerializer(serializers.ModelSerializer[AttemptStep]):
    """A step of an attempt at an asset with a set-up or a tear-down. The log entries of the
    attempt with this ``step`` are its output.
    """

    step = serializers.ChoiceField(source="kind", choices=StepKind.choices)
    error = MaskedText(
        help_text="The reason why the step failed, was stopped, or was not executed."
    )

    class Meta:
        model = AttemptStep
        fields: tuple[str, ...] = ("step", "name", "state", "error", "started_at", "ended_at")
        read_only_fields: tuple[str, ...] = fields


class AttemptSerializer(serializers.ModelSerializer[RunAttempt]):
    """One attempt of a run."""

    gateway = serializers.CharField(
        source="gateway.name", allow_null=True, default=None, read_only=True
    )
    error = MaskedText()
    traceback = MaskedText(trim_whitespace=False)
    cpu_seconds = serializers.FloatField(
        allow_null=True,
        help_text="Processor time of the processes of the run, without Spark; null until the end,"
        " and if the worker did not see the end.",
    )
    peak_memory = serializers.IntegerField(
        allow_null=True,
        help_text="The largest memory of a process of the run in bytes, without Spark; null like"
        " `cpu_seconds`.",
    )
    steps = AttemptStepSerializer(many=True)

    class Meta:
        model = RunAttempt
        fields: tuple[str, ...] = (
            "number", "gateway", "engine", "application_id", "application_ui", "outcome", "error",
            "traceback", "started_at", "ended_at", "cpu_seconds", "peak_memory", "steps",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields


class CodeVersionSerializer(serializers.ModelSerializer[BundleVersion]):
    """The version of a bundle that is frozen."""

    class Meta:
        model = BundleVersion
        fields: tuple[str, ...] = ("id", "digest")
        read_only_fields: tuple[str, ...] = fields


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run as a line of a list."""

    serializer_field_mapping = MODEL_FIELDS

    asset = serializers.CharField(source="asset.name")
    group = serializers.IntegerField(source="group_id")
    tick = serializers.IntegerField(
        source="tick_id",
        allow_null=True,
        help_text="The tick of the schedule that queued the run; null without a tick, and once"
        " the tick was deleted from the record.",
    )
    requested_by = serializers.CharField(
        source="requested_by.username", allow_null=True, default=None, read_only=True
    )
    params = MaskedJSON()
    error = MaskedText()

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id", "asset", "group", "trigger", "tick", "queue", "state", "selection",
            "partition_count", "params", "attempt_count", "error", "error_kind", "skip_reason",
            "requested_by", "created_at", "queued_at", "dispatched_at", "started_at", "ended_at",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields


class ValidationResultSerializer(serializers.ModelSerializer[ValidationResult]):
    """The result of a validation of one asset. If ``passed`` is false and ``severity`` is error,
    the run has failed. If ``evaluated`` is false, the validation could not be evaluated, and
    therefore has not passed.
    """

    attempt = serializers.IntegerField(source="attempt.number")
    asset = serializers.CharField(source="asset.name")
    description = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    observed = serializers.SerializerMethodField()

    class Meta:
        model = ValidationResult
        fields: tuple[str, ...] = (
            "attempt", "when", "asset", "name", "description", "severity", "passed", "evaluated",
            "message", "observed",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    def get_description(self, result: ValidationResult) -> str:
        return masked_text(result.description)

    def get_message(self, result: ValidationResult) -> str:
        return masked_text(result.message)

    def get_observed(self, result: ValidationResult) -> dict[str, Any]:
        observed: dict[str, Any] = masked_json(result.observed)
        return observed


class RunPartitionSerializer(serializers.ModelSerializer[RunPartition]):
    """One partition of a run, with state, row count, size and error."""

    asset = serializers.CharField(source="partition.asset.name")
    key = serializers.CharField(source="partition.key")
    error = MaskedText(
        help_text="The reason why this partition was not materialized; empty if the reason"
        " concerns the whole run."
    )

    class Meta:
        model = RunPartition
        fields: tuple[str, ...] = ("asset", "key", "state", "rows", "bytes", "error")
        read_only_fields: tuple[str, ...] = fields


class RunDetailSerializer(RunSerializer):
    """A run with attempts, partitions by state and one by one, and results of validations, the last
    attempt's first: at most a thousand partitions and a thousand results.
    ``partition_list_next`` is the address of the partitions that follow, null where
    ``partition_list`` has all.
    """

    attempts = AttemptSerializer(many=True)
    partitions = serializers.SerializerMethodField()
    partition_list = serializers.SerializerMethodField()
    partition_list_next = serializers.SerializerMethodField(
        help_text="Address of the partitions after the list; null if the list is complete."
    )
    validations = serializers.SerializerMethodField()
    code_version = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields: tuple[str, ...] = (
            *RunSerializer.Meta.fields, "code_version", "attempts", "partitions", "partition_list",
            "partition_list_next", "validations",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    @extend_schema_field(CodeVersionSerializer)
    def get_code_version(self, run: Run) -> Any:
        versions = BundleVersion.objects.only(*CodeVersionSerializer.Meta.fields)
        of_run = ProducerVersion.objects.filter(pk=run.producer_version_id)
        return CodeVersionSerializer(versions.get(pk__in=of_run.values("bundle_version"))).data

    @extend_schema_field(ValidationResultSerializer(many=True))
    def get_validations(self, run: Run) -> Any:
        return ValidationResultSerializer(validations_of(run, MOST_VALIDATIONS), many=True).data

    @extend_schema_field(RunPartitionSerializer(many=True))
    def get_partition_list(self, run: Run) -> Any:
        return RunPartitionSerializer(self._listed(run)[:MOST_PARTITIONS], many=True).data

    def get_partition_list_next(self, run: Run) -> str | None:
        positions = self._listed(run).values_list("position", flat=True)
        # The last row of the list, where one more row follows.
        around_end = list(positions[MOST_PARTITIONS - 1 : MOST_PARTITIONS + 1])
        if len(around_end) < 2:
            return None
        address = reverse("api:run-partitions", args=[run.pk])
        return f"{address}?cursor={encode_cursor(around_end[0])}"

    def _listed(self, run: Run) -> QuerySet[RunPartition]:
        return partitions_of_run(run).select_related("partition__asset").order_by("position")

    def get_partitions(self, run: Run) -> dict[str, int]:
        partitions = partitions_of_run(run).order_by()
        states = partitions.values_list("state").annotate(Count("id"))
        return dict(states)


class LogEntrySerializer(serializers.Serializer[Any]):
    """A chunk of an attempt's output."""

    attempt = serializers.IntegerField(source="attempt__number")
    sequence = serializers.IntegerField()
    step = serializers.ChoiceField(
        choices=[("", "None"), *StepKind.choices],
        help_text="The step that wrote the output; empty for other output.",
    )
    at = serializers.DateTimeField()
    text = MaskedText(trim_whitespace=False)


class LogPageSerializer(serializers.Serializer[Any]):
    """Pieces of a log in order. Repeat with ``cursor`` until ``ended`` to follow a log."""

    entries = LogEntrySerializer(many=True)
    cursor = serializers.CharField(allow_null=True)
    ended = serializers.BooleanField()
