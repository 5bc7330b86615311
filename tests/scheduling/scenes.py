"""Scheduled assets, and runs brought to their end without a worker."""

from datetime import UTC, datetime
from typing import Any

import slicewise
from assets_app.catalogue.timetables import store_schedules
from assets_app.execution import attempts
from assets_app.execution.attempts import Failure
from assets_app.execution.transitions import move_all
from assets_app.models import Asset, Gateway, Run, RunState
from tests.cast import asset


def at(*parts: int) -> datetime:
    """An instant in UTC."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def cron(expression: str) -> dict[str, str]:
    """A schedule by time, as the loader reports it."""
    return {"kind": "cron", "expression": expression}


def scheduled(
    name: str,
    schedule: dict[str, Any],
    partition: slicewise.PartitionDefinition | None = None,
    *,
    since: datetime,
    upstream: dict[str, slicewise.PartitionMapping | None] | None = None,
    **options: Any,
) -> Asset:
    """An asset with a schedule that began at an instant."""
    made = asset(
        name, partition, upstream=upstream, options={"schedule": schedule, **options},
        schedule=schedule,
    )  # fmt: skip
    assert made.producer is not None
    store_schedules([made.producer], now=since)
    return made


def waiting(of: Asset) -> list[str]:
    """Selections of the runs of an asset that wait in the queue, in order."""
    queued = Run.objects.filter(asset=of, state=RunState.QUEUED)
    return list(queued.order_by("id").values_list("selection", flat=True))


def make(run: Run, gateway: Gateway) -> None:
    """Bring a queued run to its success."""
    attempt = begin(run, gateway)
    staged = [{"key": key, "path": key, "rows": 1, "bytes": 1} for key in attempt.keys]
    assert attempts.intend_to_publish(attempt.row, "/lake", "/lake/_s", staged)
    assert attempts.succeed(attempt.row)


def fail(run: Run, gateway: Gateway) -> None:
    """Bring a queued run to its failure."""
    assert attempts.fail(begin(run, gateway).row, Failure(error="ValueError: no"))


def begin(run: Run, gateway: Gateway) -> attempts.Attempt:
    """Have a queued run begun by the gateway, with what is there of its inlets."""
    move_all([run.pk], RunState.QUEUED, RunState.DISPATCHED)
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    attempts.take_inputs(attempt)
    return attempt


def make_all(of: Asset, gateway: Gateway) -> None:
    """Bring all waiting runs of an asset to their success."""
    for run in Run.objects.filter(asset=of, state=RunState.QUEUED).order_by("id"):
        make(run, gateway)
