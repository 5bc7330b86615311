"""Planning of the runs that materialize due partitions."""

from collections.abc import Iterator, Sequence

from assets_app.execution.queue.claims import PlannedRun, RunSpec
from assets_app.execution.request.requests import batches
from assets_app.models import ProducerVersion, Schedule, Target, Trigger
from slicewise.partitions import PartitionRow


def terms_of(
    schedule: Schedule, target: Target, trigger: Trigger, *, tick_id: int | None = None
) -> RunSpec:
    """Return the run terms that all scheduled runs of a target share."""
    version = version_in_force(schedule)
    return RunSpec(
        target=target,
        producer_version=version,
        group=schedule.group,
        trigger=trigger,
        params=version.spec.params,
        requested_by=None,
        tick_id=tick_id,
    )


def version_in_force(schedule: Schedule) -> ProducerVersion:
    """Return the producer version that a schedule runs; a schedule with a rule has one."""
    version = schedule.producer.current_version
    if version is None:
        raise ValueError(f"{schedule.producer} has a schedule and no version")
    return version


def planned_runs(run_terms: RunSpec, rows: Sequence[PartitionRow]) -> Iterator[PlannedRun]:
    """Split partitions into planned runs, by the producer's strategy."""
    for chunk in batches(rows, run_terms.producer_version.spec.strategy):
        if chunk:
            yield PlannedRun(run_terms, chunk)
