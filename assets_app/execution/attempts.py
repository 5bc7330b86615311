"""An attempt at a run: begun, fenced by its token, and brought to its end."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from assets_app.catalogue.texts import storable
from assets_app.execution.hooks import leave_hook
from assets_app.execution.inputs import UpstreamInput, read_inputs
from assets_app.execution.intending import Partly, keep_staged, keep_unmade, take_found
from assets_app.execution.messages import nudge_dispatch
from assets_app.execution.outputs import (
    Found,
    StagedOutlet,
    add_found,
    keep_outlets,
)
from assets_app.execution.settling import (
    published_keys,
    record_partly,
    record_success,
    release_canceled,
    release_failed,
)
from assets_app.execution.transitions import move
from assets_app.models import (
    DISCOVERY,
    AttemptInput,
    AttemptOutcome,
    FailureKind,
    Gateway,
    HookOption,
    Run,
    RunAttempt,
    RunPartition,
    RunState,
)
from assets_app.queries.clock import database_now

# Failures of the platform are retried beside what the asset says of its own.
PLATFORM_RETRIES = 5
_PLATFORM_RETRY_DELAY = timedelta(seconds=1)
# A run that finds others in its way looks again after as long as it has been at it, within these.
_STEP_BACK, _STEP_BACK_LONGEST = timedelta(seconds=5), timedelta(minutes=10)
# No run of another is waited for any longer.
_PATIENCE = timedelta(hours=6)
_COUNTERS = {FailureKind.CODE: "code_failures", FailureKind.PLATFORM: "platform_failures"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A run that this worker has just begun, with all that the runner is told.

    ``keys`` are those of its partitions: none for a run that ``is_discovering``, to find some.
    """

    run: Run
    row: RunAttempt
    keys: Sequence[str]
    is_discovering: bool = False
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


def lease_end() -> datetime:
    """When a lease that is given now runs out, by the one clock."""
    return database_now() + timedelta(seconds=settings.LEASE_SECONDS)


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
        engine=run.producer_version.definition.get("engine") or "connect",
        spark_session_id=uuid4(),
        started_at=now,
    )
    # Of a run that failed in part and is retried, the rest.
    rows = run.partitions.filter(
        slice__asset=run.asset_id, state=RunPartition.State.PENDING
    ).order_by("position")
    slices = list(rows.values_list("slice__key", "slice__identity"))
    is_discovering = any(identity == DISCOVERY for _, identity in slices)
    return Attempt(
        run=run,
        row=row,
        keys=[] if is_discovering else [key for key, _ in slices],
        unstopped=unstopped_before(row),
        is_discovering=is_discovering,
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


@transaction.atomic
def take_over(attempt_id: int, token: str, state: RunState) -> RunAttempt | None:
    """A lost attempt under a new token, so that who had it cannot wake up and go on.

    None if somebody else has taken it, or its run is not in that state. Its row is locked first:
    of two that come at once the second finds another token.
    """
    lost = RunAttempt.objects.select_for_update(of=("self",)).filter(
        pk=attempt_id, token=token, ended_at__isnull=True, run__state=state
    )
    attempt = lost.first()
    if attempt is not None:
        attempt.token, attempt.lease_until = uuid4(), lease_end()
        attempt.save(update_fields=["token", "lease_until"])
    return attempt


def renew(attempt: RunAttempt) -> bool:
    """Extend the attempt's lease; False if it is no longer its own."""
    held = RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token, ended_at__isnull=True)
    return held.update(lease_until=lease_end()) == 1


@transaction.atomic
def take_inputs(attempt: Attempt) -> list[UpstreamInput]:
    """What the attempt reads; the versions that are there now are kept with it.

    Raises ValueError where the definitions do not say which upstream partitions are needed.
    """
    inputs = read_inputs(attempt.run, attempt.keys, is_discovering=attempt.is_discovering)
    AttemptInput.objects.bulk_create(
        AttemptInput(attempt=attempt.row, slice=piece, version=piece.version)
        for upstream in inputs
        for piece in upstream.slices
    )
    return inputs


@transaction.atomic
def intend_to_publish(
    attempt: RunAttempt,
    outlets: Sequence[StagedOutlet],
    found: Found | None = None,
    partly: Partly | None = None,
) -> bool:
    """Commit what is about to be published, and the keys that are about to be added.

    Of a run that fails ``partly`` that is some of its partitions; the others are left, each with
    its reason. Partitions that a discovering run has found become its own. False if the run is no
    longer this attempt's, or canceled. Raises FoundKeysHeld, with nothing changed, where another
    run is making a partition that this one has written.
    """
    if not _still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.RUNNING, RunState.PUBLISHING):
        return False
    keep_outlets(attempt, outlets)
    if found:
        RunAttempt.objects.filter(pk=attempt.pk).update(found=found)
        take_found(attempt.run_id, outlets, found)
    for outlet in outlets:
        keep_staged(attempt.run_id, outlet)
    if partly is not None:
        keep_unmade(attempt, partly)
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
    add_found(_found_by(attempt), attempt.run_id)
    _end(attempt, AttemptOutcome.SUCCEEDED)
    leave_hook(attempt, HookOption.ON_SUCCESS)
    nudge_dispatch()
    return True


@transaction.atomic
def fail_publishing(
    attempt: RunAttempt, failure: Failure, published: Mapping[int, Collection[str]]
) -> bool:
    """Give up a publication that cannot go on.

    What is in place by then is recorded, by the id of its asset and its folders, the rest has
    failed. Of keys that the run has found those are added of which data is in place.
    """
    if not _still_held(attempt):
        return False
    counter = _COUNTERS[failure.kind]
    said = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.FAILED, ended_at=timezone.now(), **said
    ):
        return False
    record_partly(attempt.run_id, attempt.pk, published)
    add_found(_found_by(attempt), attempt.run_id, only=published_keys(attempt.run_id))
    _end(attempt, AttemptOutcome.FAILED, failure)
    leave_hook(attempt, HookOption.ON_FAILURE)
    nudge_dispatch()
    return True


@transaction.atomic
def fail(attempt: RunAttempt, failure: Failure) -> bool:
    """End a running attempt: another one where retries are left, else the run has failed."""
    if not _still_held(attempt):
        return False
    run = Run.objects.select_related("producer_version").get(pk=attempt.run_id)
    counter = _COUNTERS[failure.kind]
    said = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    delay = retry_delay(run, failure.kind)
    now = database_now()
    if delay is not None:
        moved = move(
            run.pk, RunState.RUNNING, RunState.QUEUED, not_before=now + delay, queued_at=now, **said
        )
    else:
        moved = move(run.pk, RunState.RUNNING, RunState.FAILED, ended_at=now, **said)
        if moved:
            release_failed([run.pk])
            leave_hook(attempt, HookOption.ON_FAILURE)
    if moved:
        _end(attempt, AttemptOutcome.FAILED, failure)
        nudge_dispatch()
    return moved


@transaction.atomic
def step_back(attempt: RunAttempt, reason: str) -> bool:
    """Queue the run again for when others in its way may have ended, which is no failure of its
    own; one that has been at it for hours fails. False if it is not this attempt's to say.
    """
    if not _still_held(attempt):
        return False
    now, failure = database_now(), Failure(error=reason, kind=FailureKind.PLATFORM)
    begun = Run.objects.values_list("started_at", flat=True).get(pk=attempt.run_id) or now
    if now - begun > _PATIENCE:
        return fail(attempt, failure)
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=now,
        not_before=now + max(_STEP_BACK, min(now - begun, _STEP_BACK_LONGEST)),
        error=failure.error,
        error_kind=failure.kind,
    )
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


def _found_by(attempt: RunAttempt) -> Found:
    found: Found = RunAttempt.objects.values_list("found", flat=True).get(pk=attempt.pk)
    return found


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


def retry_delay(run: Run, kind: FailureKind) -> timedelta | None:
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
