"""An attempt at a run: begun, fenced by its token, until it publishes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from assets_app.execution.inputs import UpstreamInput, read_inputs
from assets_app.execution.intending import Partly, keep_staged, keep_unmade, take_found
from assets_app.execution.outputs import (
    Found,
    StagedOutlet,
    keep_outlets,
)
from assets_app.execution.transitions import move
from assets_app.models import (
    DISCOVERY,
    AttemptInput,
    AttemptOutcome,
    Gateway,
    Run,
    RunAttempt,
    RunPartition,
    RunState,
)
from assets_app.queries.clock import database_now


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
    if not still_held(attempt):
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


def still_held(attempt: RunAttempt) -> bool:
    """Lock the attempt if its token is still the one in the row and it has not ended."""
    held = RunAttempt.objects.select_for_update().filter(
        pk=attempt.pk, token=attempt.token, ended_at__isnull=True
    )
    return held.exists()
