"""Serializers of received events, which may have any facets, and of the answer."""

from typing import Any

from rest_framework import serializers

from slicewise_server.lineage.models import ReceivedWrite
from slicewise_server.lineage.received_runs import ReceivedDataset, ReceivedRun
from slicewise_server.web.api.serializers import (
    JSONObject,
    MaskedText,
    TextField,
    json_kind,
)

MOST_EVENTS = 100
"""The number of events in one request."""
_MOST_DATASETS = 1_000
_LONGEST_NAME = 4_000
_TYPES = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
_LARGEST_COUNT = 2**63 - 1


class _FacetValues(serializers.Serializer[Any]):
    """A part of an event: unknown fields are left unread, as OpenLineage wants, and null counts
    as absent.
    """

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError(f"This must be an object, not {json_kind(data)}.")
        return super().to_internal_value(
            {name: value for name, value in data.items() if value is not None}
        )


class _PartitionsFacet(_FacetValues):
    selection = TextField(required=False, allow_blank=True, max_length=1_000_000)
    written = serializers.BooleanField(required=False)


class _LinkSerializer(_FacetValues):
    namespace = TextField(max_length=_LONGEST_NAME)
    name = TextField(max_length=_LONGEST_NAME)


class _SymlinksFacet(_FacetValues):
    identifiers = serializers.ListField(child=_LinkSerializer(), required=False, max_length=20)


class _SubsetPartition(_FacetValues):
    dimensions = JSONObject()


class _SubsetCondition(_FacetValues):
    type = TextField(max_length=100)
    partitions = serializers.ListField(
        child=_SubsetPartition(), required=False, default=list, max_length=10_000
    )
    locations = serializers.ListField(
        child=TextField(max_length=_LONGEST_NAME), required=False, default=list, max_length=10_000
    )


class _SubsetFacet(_FacetValues):
    outputCondition = _SubsetCondition(required=False)


class _StatisticsFacet(_FacetValues):
    rowCount = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST_COUNT)
    size = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST_COUNT)


class _DatasetFacets(_FacetValues):
    symlinks = _SymlinksFacet(required=False)
    slicewise_partitions = _PartitionsFacet(required=False)


class _OutputFacets(_FacetValues):
    subset = _SubsetFacet(required=False)
    outputStatistics = _StatisticsFacet(required=False)


class _InputDataset(_FacetValues):
    namespace = TextField(max_length=_LONGEST_NAME)
    name = TextField(max_length=_LONGEST_NAME, trim_whitespace=False)
    facets = _DatasetFacets(required=False, default=dict)


class _OutputDataset(_InputDataset):
    outputFacets = _OutputFacets(required=False, default=dict)


class _Run(_FacetValues):
    runId = serializers.UUIDField()


class _Job(_FacetValues):
    namespace = TextField(max_length=_LONGEST_NAME)
    name = TextField(max_length=_LONGEST_NAME)


class LineageEventSerializer(_FacetValues):
    """An event of OpenLineage; of its fields and facets these are read."""

    eventTime = serializers.DateTimeField()
    producer = TextField(max_length=_LONGEST_NAME)
    schemaURL = TextField(max_length=_LONGEST_NAME)
    eventType = serializers.ChoiceField(_TYPES, required=False, default="OTHER")
    run = _Run(required=False)
    job = _Job(required=False)
    inputs = serializers.ListField(
        child=_InputDataset(), required=False, default=list, max_length=_MOST_DATASETS
    )
    outputs = serializers.ListField(
        child=_OutputDataset(), required=False, default=list, max_length=_MOST_DATASETS
    )
    dataset = _InputDataset(
        required=False, help_text="The dataset of an event about a dataset alone."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a job, except for an event about a dataset alone."""
        if "job" not in attrs and "dataset" not in attrs:
            raise serializers.ValidationError({"job": "This field is required."})
        if "run" in attrs and "job" not in attrs:
            raise serializers.ValidationError({"job": "An event of a run has a job."})
        return attrs


def received_run(event: dict[str, Any], field_prefix: str) -> ReceivedRun | None:
    """Return the run or job of a validated event; None for an event about a dataset alone."""
    if "job" not in event:
        return None
    return ReceivedRun(
        event_type=event["eventType"],
        event_time=event["eventTime"],
        run_id=event["run"]["runId"] if "run" in event else None,
        job_namespace=event["job"]["namespace"],
        job_name=event["job"]["name"],
        producer=event["producer"],
        field_prefix=field_prefix,
        inputs=[ReceivedDataset(**dataset) for dataset in event["inputs"]],
        outputs=[ReceivedDataset(**dataset) for dataset in event["outputs"]],
    )


class ReceivedWriteSerializer(serializers.ModelSerializer[ReceivedWrite]):
    """A declared asset among the outputs of a run, counted as a write or not."""

    asset = serializers.CharField(source="asset.name")
    run = serializers.UUIDField(source="run_id")
    report = serializers.IntegerField(
        source="report_id",
        allow_null=True,
        help_text="The recorded write; null if the output is not counted as a write.",
    )
    problem = MaskedText(help_text="The reason why the output is not counted as a write.")

    class Meta:
        model = ReceivedWrite
        fields: tuple[str, ...] = ("asset", "run", "selection", "report", "problem")
        read_only_fields: tuple[str, ...] = fields


class LineageAnswerSerializer(serializers.Serializer[Any]):
    """The writes of the received events, and the number of edges left out."""

    writes = ReceivedWriteSerializer(many=True)
    edges_left_out = serializers.IntegerField(
        required=False,
        help_text="Edges beyond the 1,000 that one request adds; of a job, the number of the"
        " event with the most. Absent where no edge is left out.",
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Leave out the number of edges where there is none."""
        values = super().to_representation(instance)
        return {name: value for name, value in values.items() if value is not None}
