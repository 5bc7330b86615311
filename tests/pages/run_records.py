"""Runs put on record in a given state, without a worker."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from assets_app.models import (
    Asset,
    AssetPartition,
    ProducerVersion,
    Run,
    RunGroup,
    RunPartition,
    RunState,
)


def recorded_run(of: Asset, state: RunState, selection: str = "2013-01-05", **fields: Any) -> Run:
    """Create a run of a request in the state."""
    assert of.producer
    assert of.producer.current_version
    values: dict[str, Any] = {
        "asset": of, "trigger": "manual", "queue": "scheduled", "partition_count": 1,
        "producer_version": of.producer.current_version, "state": state, "selection": selection,
    }  # fmt: skip
    if "group" not in fields:
        values["group"] = RunGroup.objects.create(kind="request")
    return Run.objects.create(**values | fields)


def repeat_run(run: Run, times: int) -> None:
    """Create further runs with the values of a run."""
    copies = []
    for _ in range(times):
        copies.append(Run.objects.get(pk=run.pk))
        copies[-1].pk = None
    Run.objects.bulk_create(copies)


def failed_run(of: Asset, selection: str = "2013-01-05", **fields: Any) -> Run:
    """Create a run that has just failed."""
    now = timezone.now()
    values = {"error": "no rows", "error_kind": "code", "started_at": now, "ended_at": now}
    return recorded_run(of, RunState.FAILED, selection, **values | fields)


def failed_partition(
    of: Asset, key: str, *, error: str = "no rows", ago: timedelta = timedelta(0)
) -> Run:
    """Create a run that failed to materialize a partition, which has stayed failed since."""
    ended: datetime = timezone.now() - ago
    run = failed_run(of, key, error=error, started_at=ended, ended_at=ended)
    window = None if of.definition is None else of.definition.parse(key).time
    partition, _ = AssetPartition.objects.update_or_create(
        asset=of, identity=of.identity, key=key,
        defaults={
            "state": "failed", "last_run": run,
            "window_start": None if window is None else window.start,
            "window_end": None if window is None else window.end,
        },
    )  # fmt: skip
    RunPartition.objects.create(run=run, partition=partition, position=0, state="failed")
    return run


def renewed_code(of: Asset, digest: str = "f") -> ProducerVersion:
    """Put another version of the function of the asset in force."""
    producer = of.producer
    assert producer
    version = producer.current_version
    assert version
    version.pk, version.digest = None, digest * 64
    version.save()
    producer.current_version = version
    producer.save()
    return version
