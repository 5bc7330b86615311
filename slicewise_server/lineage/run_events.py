"""Events of OpenLineage, built from the record of an attempt."""

from copy import copy
from functools import cache
from importlib.metadata import version as installed_version
from typing import NamedTuple

from django.conf import settings
from openlineage.client import facet_v2
from openlineage.client.constants import __version__ as client_version
from openlineage.client.event_v2 import (
    Job,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    error_message_run,
    nominal_time_run,
    parent_run,
    processing_engine_run,
)

import slicewise
from assets_app.models import AttemptOutcome, GroupKind
from slicewise.texts import masked_text
from slicewise_server.lineage.attempt_record import AttemptRecord, record_of
from slicewise_server.lineage.attempt_rows import AttemptRows
from slicewise_server.lineage.dataset_facets import input_dataset, output_dataset
from slicewise_server.lineage.dataset_facts import producer
from slicewise_server.lineage.job_facets import LANGUAGE
from slicewise_server.lineage.models import LineageEvent
from slicewise_server.lineage.run_ids import attempt_run_id, parent_run_id


def run_event(event: LineageEvent, rows: AttemptRows) -> RunEvent:
    """Return the event of the start or the end of an attempt."""
    record = record_of(rows)
    return RunEvent(
        eventType=RunState[event.kind],
        eventTime=event.at.isoformat(),
        producer=producer(),
        run=Run(runId=attempt_run_id(record.attempt), facets=_run_facets(record, event)),
        job=Job(
            namespace=settings.OPENLINEAGE_NAMESPACE,
            name=record.producer.job_name,
            # The client adds facets of its own, and changes some.
            facets={name: copy(facet) for name, facet in record.producer.job_facets.items()},
        ),
        inputs=[input_dataset(used) for used in record.inputs],
        outputs=[output_dataset(used) for used in record.outputs],
    )


# ---------------------------------------------------------------- the run


def _run_facets(record: AttemptRecord, event: LineageEvent) -> dict[str, facet_v2.RunFacet]:
    facets: dict[str, facet_v2.RunFacet | None] = {
        "parent": _parent(record),
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=_spark_version(),
            name="spark",
            openlineageAdapterVersion=client_version,
            producer=producer(),
        ),
        "nominalTime": _nominal_time(record),
        "errorMessage": _error(record) if event.is_end else None,
    }
    return {name: facet for name, facet in facets.items() if facet is not None}


@cache
def _spark_version() -> str:
    return installed_version("pyspark")


def _nominal_time(record: AttemptRecord) -> facet_v2.RunFacet | None:
    """Return the span of the windows that the run is about; None without windows."""
    definition, keys = record.planned_definition, record.planned.keys
    if definition is None or not keys:
        return None
    try:
        hull = slicewise.PartitionSet.of(definition, map(definition.parse, keys)).hull
    except ValueError:  # the definition no longer has one of the keys
        return None
    if hull is None:
        return None
    return nominal_time_run.NominalTimeRunFacet(
        nominalStartTime=hull.start.isoformat(),
        nominalEndTime=hull.end.isoformat(),
        producer=producer(),
    )


def _error(record: AttemptRecord) -> facet_v2.RunFacet | None:
    attempt = record.attempt
    if attempt.outcome == AttemptOutcome.SUCCEEDED or not attempt.error:
        return None
    return error_message_run.ErrorMessageRunFacet(
        message=masked_text(attempt.error),
        programmingLanguage=LANGUAGE,
        stackTrace=masked_text(attempt.traceback) or None,
        producer=producer(),
    )


class _Parent(NamedTuple):
    job_name: str
    run_id: str


def _parent(record: AttemptRecord) -> facet_v2.RunFacet:
    parent = _parent_of(record)
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=parent.run_id),
        job=parent_run.Job(namespace=settings.OPENLINEAGE_NAMESPACE, name=parent.job_name),
        producer=producer(),
    )


def _parent_of(record: AttemptRecord) -> _Parent:
    """Return the backfill, the tick of the schedule, or the request that the run belongs to."""
    run, group, job_name = record.attempt.run, record.attempt.run.group, record.producer.job_name
    if (backfill := record.backfill) is not None:
        run_id = parent_run_id("backfill", backfill.pk, group.created_at)
        return _Parent(f"{backfill.asset.name}.backfill", run_id)
    if run.tick_id is not None and run.tick is not None:
        return _Parent(f"{job_name}.schedule", parent_run_id("tick", run.tick_id, run.tick.at))
    kind = "schedule" if group.kind == GroupKind.SCHEDULE else "request"
    return _Parent(f"{job_name}.{kind}", parent_run_id("group", group.pk, group.created_at))
