"""Runs put in a queue, by a request, by a claim, or directly."""

from collections.abc import Sequence
from typing import Any

from accounts_app.models import User
from assets_app.execution.queue.claims import RunSpec, claim
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, GroupKind, Queue, Run, RunGroup, Target, Trigger
from slicewise.partitions.rows import PartitionRow


def run_of(of: Asset, selection: str | None, user: User) -> Run:
    group = materialize(MaterializeRequest(asset=of, selection=selection or ""), user=user)
    return group.runs.get()


def queue_runs(of: Asset, runs: int, queue: Queue = Queue.SCHEDULED, **group: Any) -> RunGroup:
    """Queue runs of an asset, in a group of their own, without partitions."""
    assert of.producer
    assert of.producer.current_version
    run_group = RunGroup.objects.create(kind=GroupKind.REQUEST, queue=queue, **group)
    add_runs(run_group, of, runs)
    return run_group


def add_runs(group: RunGroup, of: Asset, runs: int) -> None:
    assert of.producer
    assert of.producer.current_version
    Run.objects.bulk_create(
        Run(
            group=group,
            producer_version=of.producer.current_version,
            asset=of,
            trigger=Trigger.MANUAL,
            queue=group.queue,
            partition_count=1,
        )
        for _ in range(runs)
    )


def claim_runs(
    of: Asset, planned: Sequence[Sequence[PartitionRow]], *, trigger: Trigger = Trigger.SCHEDULE
) -> list[Run]:
    """Create a run for each list of partitions, in one claim."""
    group = RunGroup.objects.create(kind="schedule")
    assert of.producer
    assert of.producer.current_version
    terms = RunSpec(
        target=Target(of), producer_version=of.producer.current_version, group=group,
        trigger=trigger, params={}, requested_by=None,
    )  # fmt: skip
    claimed, _ = claim(terms, planned)
    assert claimed
    return list(group.runs.order_by("id"))
