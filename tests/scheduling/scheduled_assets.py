"""Scheduled assets, and runs brought to their end without a worker."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

import slicewise
from accounts_app.models import User
from assets_app.catalogue.timetables import store_schedules
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.transitions import move_all
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetDependency, Gateway, Run, RunState, ScheduleTick
from slicewise import PartitionByInterval
from slicewise.declaring import fresh_names, schedule_names
from tests.factories import asset, outlet_of

DAILY = PartitionByInterval("@daily", start="2024-01-01")
HOURLY = PartitionByInterval("@hourly", start="2024-01-01")


def at(*values: int) -> datetime:
    """Return an instant in UTC."""
    return datetime(*values, tzinfo=UTC)  # type: ignore[misc,arg-type]


def cron(expression: str, timezone: str | None = None) -> dict[str, str]:
    """Return a schedule by time, or a time in an expression, as the loader reports it."""
    own_zone = {"timezone": timezone} if timezone else {}
    return {"kind": "cron", "expression": expression, **own_zone}


def every(span: timedelta) -> dict[str, Any]:
    """Return a schedule by elapsed time, as the loader reports it."""
    return {"kind": "timedelta", "seconds": span // timedelta(seconds=1)}


def after(span: timedelta, *, remake: bool = False) -> dict[str, Any]:
    """Return a term for the moment so long after a window, as the loader reports it."""
    own_remake = {"remake": True} if remake else {}
    return {"kind": "after", "seconds": span // timedelta(seconds=1), **own_remake}


def fresh(name: str, within: timedelta) -> dict[str, Any]:
    """Return a term for an asset that is to be fresh, as the loader reports it."""
    return {"kind": "fresh", "name": name, "seconds": within // timedelta(seconds=1)}


def scheduled(
    name: str,
    schedule: dict[str, Any],
    partition: slicewise.PartitionDefinition | None = None,
    *,
    since: datetime,
    upstream: dict[str, slicewise.PartitionMapping | None] | None = None,
    **options: Any,
) -> Asset:
    """Create an asset with a schedule that began at an instant."""
    scheduled_asset = asset(
        name, partition, upstream=upstream, options={"schedule": schedule, **options},
        schedule=schedule,
    )  # fmt: skip
    assert scheduled_asset.producer is not None
    with transaction.atomic():
        store_schedules([scheduled_asset.producer], now=since)
    by_asset, fresh = set(schedule_names(schedule)), set(fresh_names(schedule))
    for name_of in by_asset | fresh | set(upstream or {}):
        mapping = (upstream or {}).get(name_of)
        AssetDependency.objects.create(
            upstream=Asset.objects.get(name=name_of),
            downstream=scheduled_asset,
            inlet=name_of in (upstream or {}),
            scheduling=name_of in by_asset,
            fresh=name_of in fresh,
            mapping=mapping.to_json() if mapping else None,
        )
    return scheduled_asset


def by(name: str) -> dict[str, Any]:
    """Return a schedule by one asset."""
    return {"kind": "asset", "name": name}


def any_of(*operands: dict[str, Any]) -> dict[str, Any]:
    """Return a schedule that one operand suffices for."""
    return {"kind": "any", "of": list(operands)}


def all_of(*operands: dict[str, Any]) -> dict[str, Any]:
    """Return a schedule that needs all operands."""
    return {"kind": "all", "of": list(operands)}


def write(of: Asset, selection: str, gateway: Gateway, user: User) -> None:
    """Make partitions by hand, to the end."""
    group = materialize(MaterializeRequest(asset=of, selection=selection), user=user)
    for run in group.runs.order_by("id"):
        make(run, gateway)


def waiting(of: Asset) -> list[str]:
    """Return the selections of an asset's queued runs, in order."""
    queued = Run.objects.filter(asset=of, state=RunState.QUEUED)
    return list(queued.order_by("id").values_list("selection", flat=True))


def make(run: Run, gateway: Gateway) -> None:
    """Bring a queued run to its success."""
    finish(begin(run, gateway))


def staged(attempt: attempts.Attempt) -> list[dict[str, Any]]:
    """Return all partitions of a run that has begun, as its runner has staged them."""
    return [{"key": key, "path": key, "rows": 1, "bytes": 1} for key in attempt.keys]


def finish(attempt: attempts.Attempt) -> None:
    """Bring a run that has begun to its success."""
    assert attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    assert ending.succeed(attempt.row)


def fail(run: Run, gateway: Gateway) -> None:
    """Bring a queued run to its failure."""
    assert ending.fail(begin(run, gateway).row, Failure(error="ValueError: no"))


def publish_part(attempt: attempts.Attempt, published: dict[Asset, list[str]]) -> None:
    """End a run that has begun, and has published the partitions of these keys alone."""
    outlets = [outlet_of(attempt, staged(attempt), of=of) for of in published]
    assert attempts.intend_to_publish(attempt.row, outlets)
    paths = {of.pk: keys for of, keys in published.items()}
    assert ending.fail_publishing(attempt.row, Failure(error="no room"), paths, {})


def begin(run: Run, gateway: Gateway) -> attempts.Attempt:
    """Begin a queued run on the gateway, with the present versions of its inlets."""
    move_all([run.pk], RunState.QUEUED, RunState.DISPATCHED)
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    attempts.take_inputs(attempt)
    return attempt


def make_all(of: Asset, gateway: Gateway) -> None:
    """Bring all waiting runs of an asset to their success."""
    for run in Run.objects.filter(asset=of, state=RunState.QUEUED).order_by("id"):
        make(run, gateway)


def ticks(of: Asset) -> list[tuple[str, int, int]]:
    """Return reason, count and queued partitions of each tick, the first tick first."""
    rows = ScheduleTick.objects.filter(schedule__producer=of.producer).order_by("at")
    return [(row.reason, row.count, row.queued) for row in rows]
