"""Assets with dependencies, and backfills that are driven to their end without a worker."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.inputs import read_inputs
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.models import Asset, AssetDependency, Gateway, Producer, Run, RunState
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.services import check_backfill, request_from_text
from backfills_app.services.advance.advancing import advance
from partitions_app.models import PartitionDefinition
from slicewise.declaring import schedule_names
from slicewise_server.web.request_errors import InvalidRequest
from tests.attempts import publish
from tests.created_backfills import create_backfill
from tests.factories import asset, outlet_of, together

Mappings = Mapping[str, slicewise.PartitionMapping | None]


def following(
    name: str,
    partition: slicewise.PartitionDefinition | None = None,
    *,
    of: Mappings,
    outlets: Collection[str] = (),
    schedule: dict[str, Any] | None = None,
    **options: Any,
) -> Asset:
    """Create an asset that reads other assets, with the edges that the catalogue would have."""
    more = {"schedule": schedule, **options} if schedule else options
    if outlets:
        assets = together(name, list(outlets), partition, upstream=of, options=more)
    else:
        assets = [asset(name, partition, upstream=of, options=more)]
    scheduling = set(schedule_names(schedule))
    for downstream in assets:
        for upstream in {*of, *scheduling}:
            mapping = of.get(upstream)
            AssetDependency.objects.create(
                upstream=Asset.objects.get(name=upstream),
                downstream=downstream,
                inlet=upstream in of,
                scheduling=upstream in scheduling,
                mapping=mapping.to_json() if mapping else None,
            )
    return assets[0]


def redefine(name: str, definition: slicewise.PartitionDefinition | None) -> None:
    """Change the partition definition of a producer's assets, as if a sync had done so."""
    spec = None if definition is None else definition.to_json()
    producer = Producer.objects.get(name=name)
    version = producer.current_version
    assert version is not None
    version.pk, version.digest = None, f"{version.pk:064}"
    version.definition = {**version.definition, "partition": spec}
    version.save()
    producer.current_version = version
    producer.save()
    row = None if spec is None else PartitionDefinition.of(spec)
    Asset.objects.filter(producer=producer).update(partition_definition=row)


def ask(user: User, name: str, **fields: Any) -> Backfill:
    """Create a backfill of an asset."""
    return create_backfill(request_from_text(name, **fields), user=user)


def refusal_of(user: User, **fields: Any) -> dict[str, list[str]]:
    """Return the errors with which a request is refused, at the preview as at the creation."""
    with pytest.raises(InvalidRequest) as preview:
        check_backfill(request_from_text(**fields), user=user)
    with pytest.raises(InvalidRequest) as creation:
        create_backfill(request_from_text(**fields), user=user)
    assert creation.value.errors == preview.value.errors
    assert not Backfill.objects.exists()
    return creation.value.errors


def plan_of(user: User, name: str, **fields: Any) -> dict[str, Any]:
    """Return the preview of a backfill, by asset."""
    plan = check_backfill(request_from_text(name, **fields), user=user)
    return {asset.asset.name: asset for asset in plan.assets}


def state_of(backfill: Backfill) -> str:
    """Return the present state of a backfill."""
    backfill.refresh_from_db()
    return backfill.state


def never(_attempt: Attempt) -> bool:
    """Let no run fail."""
    return False


def drive(
    worker: Gateway,
    *,
    failing: Callable[[Attempt], bool] = never,
    except_run: int | None = None,
    most: int = 200,
) -> None:
    """Bring every run that can start to its end, except one run."""
    for _ in range(most):
        Gateway.objects.update(last_seen=timezone.now())
        advance()
        sent = (
            Run.objects.filter(state=RunState.DISPATCHED).exclude(pk=except_run or 0).order_by("id")
        )
        if not dispatch() and not sent.exists():
            advance()
            if not wake_waiting(timezone.now()) + dispatch():
                return
        for run_id in sent.values_list("id", flat=True):
            end(run_id, worker, failing=failing)
    raise AssertionError("it does not come to an end")


def end(run_id: int, worker: Gateway, *, failing: Callable[[Attempt], bool] = never) -> None:
    """Bring a dispatched run to its end, with the present versions of its inlets on record."""
    attempt = attempts.begin(run_id, worker)
    assert attempt is not None
    attempts.take_inputs(attempt)
    if failing(attempt):
        assert ending.fail(attempt.row, Failure(error="ValueError: no"))
        return
    outlets = Asset.objects.filter(name__in=attempt.run.producer_version.outlets)
    staged = [{"key": key, "path": key, "rows": 1, "bytes": 1} for key in attempt.keys]
    staging = [outlet_of(attempt, staged, of=outlet) for outlet in outlets.order_by("pk")]
    assert attempts.intend_to_publish(attempt.row, staging)
    assert ending.succeed(attempt.row)


def failing_keys(*keys: str) -> Callable[[Attempt], bool]:
    """Return a function that lets runs of one of these partitions fail."""
    return lambda attempt: bool(set(attempt.keys) & set(keys))


def outcomes(backfill: Backfill, name: str) -> dict[str, int]:
    """Count the partitions of an asset by final state, or by reason where they were skipped.

    Require that the stored counts agree with the rows.
    """
    scope = BackfillAsset.objects.get(backfill=backfill, asset__name=name)
    rows = scope.partitions.order_by().values_list("state", "reason").annotate(n=Count("pk"))
    counted = {(state, reason): number for state, reason, number in rows}
    for state in BackfillPartition.State.values:
        assert getattr(scope, state) == sum(
            number for (of, _), number in counted.items() if of == state
        )
    assert scope.expanded == scope.total == sum(counted.values())
    return {reason or state: number for (state, reason), number in counted.items()}


def lacking_input(attempt: Attempt) -> bool:
    """Return whether an input of the attempt is missing, which makes the runner refuse the run."""
    return any(upstream.missing for upstream in read_inputs(attempt.run, attempt.keys))


@contextmanager
def undone() -> Iterator[None]:
    """Undo all changes of the block at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def start(alice: User, start: str = "2013-01-01", end: str = "2013-01-31", **more: Any) -> Backfill:
    return create_backfill(request_from_text("raw_flights", start, end, **more), user=alice)


def run_all(worker: Gateway, *, failing: tuple[str, ...] = ()) -> None:
    """Bring every run that can start to its end."""
    advance()
    while dispatch():
        # Heard of, however slow the machine is.
        Gateway.objects.update(last_seen=timezone.now())
        for run_id in Run.objects.filter(state=RunState.DISPATCHED).values_list("id", flat=True):
            attempt = attempts.begin(run_id, worker)
            assert attempt is not None
            if set(attempt.keys) & set(failing):
                ending.fail(attempt.row, Failure(error="ValueError: no"))
            else:
                publish(attempt)
        advance()


def counts_of(backfill: Backfill) -> dict[str, int]:
    """Return the stored counts, after a comparison with the rows."""
    scope = BackfillAsset.objects.get(backfill=backfill)
    states = list(scope.partitions.values_list("state", flat=True))
    stored = {state: getattr(scope, state) for state in BackfillPartition.State.values}
    assert stored == {state: states.count(state) for state in stored}
    return {state: number for state, number in stored.items() if number}
