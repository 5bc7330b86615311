"""An attempt at a run: begun, fenced by its token, and brought to its end."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from assets_app.catalogue.texts import storable
from assets_app.execution.inputs import UpstreamInput, read_inputs
from assets_app.execution.messages import nudge_dispatch
from assets_app.execution.settling import (
    record_partly,
    record_success,
    release_canceled,
    release_failed,
)
from assets_app.execution.transitions import move
from assets_app.models import (
    AttemptInput,
    AttemptOutcome,
    FailureKind,
    Gateway,
    Run,
    RunAttempt,
    RunState,
)

# Failures of the platform are retried beside what the asset says of its own.
PLATFORM_RETRIES = 5
_PLATFORM_RETRY_DELAY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A run that this worker has just begun, with all that the runner is told."""

    run: Run
    row: RunAttempt
    keys: Sequence[str]
    # Earlier attempts whose Spark work may still go on.
    unstopped: Sequence[RunAttempt]

    @property
    def tag(self) -> str:
        """What Spark's operations of this attempt are tagged with."""
        return f"slicewise-run-{self.run.pk}-{self.row.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed: a line for people, the traceback, and whose fault it was."""

    error: str
    traceback: str = ""
    kind: FailureKind = FailureKind.CODE

    def __post_init__(self) -> None:
        for name in ("error", "traceback"):
            object.__setattr__(self, name, storable(getattr(self, name)))


def lease_end() -> Any:
    """When a lease that is given now runs out."""
    return timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)


@transaction.atomic
def begin(run_id: int, gateway: Gateway) -> Attempt | None:
    """Take a dispatched run for this gateway.

    None if somebody else has it or it is no longer wanted.
    """
    now = timezone.now()
    if not move(
        run_id,
        RunState.DISPATCHED,
        RunState.RUNNING,
        started_at=Coalesce(F("started_at"), now),
        attempt_count=F("attempt_count") + 1,
    ):
        return None
    # An archive may have megabytes, and is read only by the first run of its version on a host.
    run = (
        Run.objects.select_related("asset", "producer_version__bundle_version")
        .defer("producer_version__bundle_version__archive")
        .get(pk=run_id)
    )
    row = RunAttempt.objects.create(
        run=run,
        number=run.attempt_count,
        gateway=gateway,
        token=uuid4(),
        lease_until=lease_end(),
        spark_session_id=uuid4(),
        started_at=now,
    )
    keys = run.partitions.order_by("position").values_list("slice__key", flat=True)
    return Attempt(
        run=run,
        row=row,
        keys=list(keys),
        unstopped=unstopped_before(row),
    )


def unstopped_before(attempt: RunAttempt) -> list[RunAttempt]:
    """Earlier attempts at its run that may have left something behind: their worker was lost, or
    they failed and had a Spark session.

    Only back to the latest that had one: it began by clearing away those before it.
    """
    earlier = RunAttempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
    found = []
    for piece in earlier.order_by("-number").defer("error", "traceback"):
        had_session = bool(piece.application_id)
        failed = piece.outcome == AttemptOutcome.FAILED
        if piece.outcome == AttemptOutcome.LOST or (failed and had_session):
            found.append(piece)
        if had_session:
            break
    return found


def renew(attempt: RunAttempt) -> bool:
    """Extend the attempt's lease; False if it is no longer its own."""
    held = RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token, ended_at__isnull=True)
    return held.update(lease_until=lease_end()) == 1


@transaction.atomic
def take_inputs(attempt: Attempt) -> list[UpstreamInput]:
    """What the attempt reads; the versions that are there now are kept with it.

    Raises ValueError where the definitions do not say which upstream partitions are needed.
    """
    inputs = read_inputs(attempt.run, attempt.keys)
    AttemptInput.objects.bulk_create(
        AttemptInput(attempt=attempt.row, slice=piece, version=piece.version)
        for upstream in inputs
        for piece in upstream.slices
    )
    return inputs


@transaction.atomic
def intend_to_publish(
    attempt: RunAttempt, root: str, staging: str, staged: Sequence[Mapping[str, Any]]
) -> bool:
    """Commit what is about to be published.

    False if the run is no longer this attempt's, or canceled.
    """
    if not _still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.RUNNING, RunState.PUBLISHING):
        return False
    RunAttempt.objects.filter(pk=attempt.pk).update(target_root=root, staging_root=staging)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE assets_app_runpartition AS made
            SET path = staged.path, rows = staged.rows, bytes = staged.bytes
            FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[])
                     AS staged(key, path, rows, bytes),
                 assets_app_assetpartition AS slice
            WHERE made.run_id = %s AND slice.id = made.slice_id AND slice.key = staged.key
            """,
            [
                [piece["key"] for piece in staged],
                [piece["path"] for piece in staged],
                [piece["rows"] for piece in staged],
                [piece["bytes"] for piece in staged],
                attempt.run_id,
            ],
        )
    return True


@transaction.atomic
def succeed(attempt: RunAttempt) -> bool:
    """Record that the data is published; False if somebody else has done so or holds the run."""
    if not _still_held(attempt):
        return False
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.SUCCEEDED, ended_at=timezone.now(), error=""
    ):
        return False
    record_success(attempt.run_id, attempt.pk)
    _end(attempt, AttemptOutcome.SUCCEEDED)
    nudge_dispatch()
    return True


@transaction.atomic
def fail_publishing(attempt: RunAttempt, failure: Failure, published: Collection[str]) -> bool:
    """Give up a publication that cannot go on.

    What is in place by then is recorded, the rest has failed.
    """
    if not _still_held(attempt):
        return False
    said = {"error": failure.error, "error_kind": failure.kind}
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.FAILED, ended_at=timezone.now(), **said
    ):
        return False
    record_partly(attempt.run_id, attempt.pk, published)
    _end(attempt, AttemptOutcome.FAILED, failure)
    nudge_dispatch()
    return True


@transaction.atomic
def fail(attempt: RunAttempt, failure: Failure) -> bool:
    """End a running attempt: another one where retries are left, else the run has failed."""
    if not _still_held(attempt):
        return False
    run = Run.objects.select_related("producer_version").get(pk=attempt.run_id)
    counter = "code_failures" if failure.kind is FailureKind.CODE else "platform_failures"
    said = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    delay = _retry_delay(run, failure.kind)
    now = timezone.now()
    if delay is not None:
        moved = move(
            run.pk, RunState.RUNNING, RunState.QUEUED, not_before=now + delay, queued_at=now, **said
        )
    else:
        moved = move(run.pk, RunState.RUNNING, RunState.FAILED, ended_at=now, **said)
        if moved:
            release_failed([run.pk])
    if moved:
        _end(attempt, AttemptOutcome.FAILED, failure)
        nudge_dispatch()
    return moved


@transaction.atomic
def cancel(attempt: RunAttempt) -> bool:
    """Its work has been stopped: only now the run is canceled."""
    if not _still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.CANCELING, RunState.CANCELED, ended_at=timezone.now()):
        return False
    release_canceled([attempt.run_id])
    _end(attempt, AttemptOutcome.CANCELED)
    nudge_dispatch()
    return True


@transaction.atomic
def hand_back(attempt: RunAttempt, reason: str, *, counts: bool = False) -> bool:
    """Put the run back in the queue: its worker goes down in good order, or was lost, which counts
    as a failure.
    """
    if not _still_held(attempt):
        return False
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=timezone.now(),
        not_before=None,
        platform_failures=F("platform_failures") + int(counts),
    )
    if moved:
        _end(attempt, AttemptOutcome.LOST, Failure(error=reason, kind=FailureKind.PLATFORM))
        nudge_dispatch()
    return moved


def _still_held(attempt: RunAttempt) -> bool:
    """Lock the attempt if its token is still the one in the row and it has not ended."""
    held = RunAttempt.objects.select_for_update().filter(
        pk=attempt.pk, token=attempt.token, ended_at__isnull=True
    )
    return held.exists()


def _end(attempt: RunAttempt, outcome: AttemptOutcome, failure: Failure | None = None) -> None:
    RunAttempt.objects.filter(pk=attempt.pk).update(
        outcome=outcome,
        ended_at=timezone.now(),
        error=failure.error if failure else "",
        traceback=failure.traceback if failure else "",
    )


def _retry_delay(run: Run, kind: FailureKind) -> timedelta | None:
    """How long to wait for the next attempt, doubling each time; None when no retry is left."""
    if kind is FailureKind.PLATFORM:
        failures, allowed, first = run.platform_failures, PLATFORM_RETRIES, _PLATFORM_RETRY_DELAY
    else:
        definition = run.producer_version.definition
        failures, allowed = run.code_failures, definition.get("retries") or 0
        first = timedelta(seconds=definition.get("retry_delay") or 0)
    if failures >= allowed:
        return None
    delay: timedelta = min(first * 2**failures, timedelta(hours=1))
    return delay
