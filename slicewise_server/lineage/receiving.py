"""Events of other tools: outputs that are declared assets are writes, inputs are edges.

An event is received once or several times with the same result: a run writes each selection of an
asset once. An event that comes late writes no partition that was written since: the catalogue would
take the old data for new data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.db import transaction

from accounts_app import policy
from accounts_app.models import User
from assets_app.execution.request.reporting import OutdatedWrite, ReportedWrite, report_write
from assets_app.models import Asset
from slicewise.partitions import select
from slicewise_server.lineage.asset_matching import AssetMatcher, MatchedAsset
from slicewise_server.lineage.edges_of_datasets import record_edges
from slicewise_server.lineage.models import ReceivedWrite
from slicewise_server.lineage.named_partitions import (
    PartitionsNotNamed,
    WrongPartitions,
    named_selection,
)
from slicewise_server.lineage.received_runs import ReceivedDataset, ReceivedRun
from slicewise_server.web.advisory_locks import AdvisoryLock, lock_until_commit
from slicewise_server.web.request_errors import InvalidRequest

# All writes of a request are recorded in one transaction, which other writers of the assets await.
_MOST_WRITES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """An asset that a run has written, and the place of the dataset in the request."""

    run: ReceivedRun
    run_id: UUID
    dataset: ReceivedDataset
    matched: MatchedAsset
    field: str


@dataclass(frozen=True, slots=True)
class Received:
    """The result of a request: writes, counted or not, and the number of edges left out, if any."""

    writes: Sequence[ReceivedWrite] = ()
    edges_left_out: int | None = None


@transaction.atomic
def receive(runs: Sequence[ReceivedRun], *, user: User) -> Received:
    """Record the writes and edges of events; return the writes, counted or not.

    Events of runs that have not completed change nothing. An output without the names of its
    partitions is recorded as not counted. Raises InvalidRequest for a facet that names partitions
    which the asset does not have, with nothing recorded, and PermissionDenied.
    """
    policy.require(user, policy.Action.REPORT)
    # Most events are of runs that have just begun or are under way.
    runs = [run for run in runs if run.changes_catalogue]
    if not runs:
        return Received()
    matcher = AssetMatcher(dataset for run in runs for dataset in run.datasets)
    outputs = [output for run in runs for output in _outputs(run, matcher)]
    if len(outputs) > _MOST_WRITES:
        raise InvalidRequest(
            {"": f"{len(outputs):,} writes are more than one request may have ({_MOST_WRITES:,})."}
        )
    # In one order, so that no two requests wait for each other.
    for asset_id in sorted({output.matched.asset.pk for output in outputs}):
        lock_until_commit(AdvisoryLock.LINEAGE, asset_id)
    writes = [_receive_write(output, user) for output in outputs]
    return Received(writes, record_edges(runs, matcher) or None)


def _outputs(run: ReceivedRun, matcher: AssetMatcher) -> Iterator[_Output]:
    if run.run_id is None:
        return
    for number, dataset in enumerate(run.outputs):
        for matched in matcher.matches(dataset):
            # The runs of this installation are on record.
            if matched.asset.producer_id is None:
                field = f"{run.field_prefix}outputs.{number}"
                yield _Output(
                    run=run, run_id=run.run_id, dataset=dataset, matched=matched, field=field
                )


def _receive_write(output: _Output, user: User) -> ReceivedWrite:
    """Record one write, unless the same run has written the selection before."""
    selection, problem = "", ""
    try:
        selection = named_selection(output.dataset, output.matched)
    except PartitionsNotNamed as error:
        problem = str(error)
    except WrongPartitions as error:
        raise InvalidRequest({output.field: str(error)}) from error
    write, is_new = ReceivedWrite.objects.get_or_create(
        asset=output.matched.asset,
        run_id=output.run_id,
        selection_digest=sha256(selection.encode()).hexdigest(),
        defaults={
            "selection": selection,
            "problem": problem,
            "job_namespace": output.run.job_namespace,
            "job_name": output.run.job_name,
            "producer": output.run.producer,
            "reported_by": user,
        },
    )
    if problem or (write.report_id is not None and not is_new):
        return write
    _report(write, output, user)
    return write


def _report(write: ReceivedWrite, output: _Output, user: User) -> None:
    asset = output.matched.asset
    rows, size = _counts(output.dataset) if _is_single(write.selection, asset) else (None, None)
    reported = ReportedWrite(
        asset=asset,
        selection=write.selection,
        rows=rows,
        bytes=size,
        metadata={
            "openlineage_run": str(write.run_id),
            "job": f"{write.job_namespace}/{write.job_name}",
        },
        written_at=output.run.event_time,
    )
    try:
        write.report, write.problem = report_write(reported, user=user), ""
    except OutdatedWrite:
        write.problem = (
            "The partitions were written after the time of the event, or by this run before."
        )
    except InvalidRequest as error:
        # Wrong words of a facet are an error of the request. A folder that is not over yet, say, is
        # not: the tool cannot send another one.
        if write.selection and output.matched.folder == "":
            raise InvalidRequest({output.field: str(error)}) from error
        write.problem = str(error)
    write.save(update_fields=["report", "problem"])


def _is_single(selection: str, asset: Asset) -> bool:
    definition = asset.definition
    if definition is None:
        return True
    try:
        return len(select(definition, selection)) == 1
    except ValueError:  # the report says what is wrong with the selection
        return False


def _counts(dataset: ReceivedDataset) -> tuple[int | None, int | None]:
    statistics = dataset.outputFacets.get("outputStatistics", {})
    return statistics.get("rowCount"), statistics.get("size")
