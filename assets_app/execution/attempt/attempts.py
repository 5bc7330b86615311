"""Attempts at runs: from the beginning, fenced by a token, to the intent to publish."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from assets_app.execution.attempt.inputs import UpstreamInput, forget_superseded, read_inputs
from assets_app.execution.attempt.intending import (
    PartialFailure,
    claim_discovered,
    store_partial_failure,
    store_staged,
)
from assets_app.execution.attempt.leases import begin_lease, renew, still_held
from assets_app.execution.attempt.outputs import DiscoveredKeys, StagedOutlet, store_outlets
from assets_app.execution.queue.transitions import move
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
from assets_app.queries.clock import database_now, database_time
from slicewise.runner.session import SUBMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A run that this worker has just begun, with all facts that the runner needs.

    ``keys`` are the keys of the run's partitions; empty for a run that ``is_discovering``, which is
    to discover partitions.
    """

    run: Run
    row: RunAttempt
    keys: Sequence[str]
    is_discovering: bool = False
    # Earlier attempts whose Spark work may still go on.
    unstopped: Sequence[RunAttempt]

    @property
    def tag(self) -> str:
        """The tag that Spark's operations of this attempt carry."""
        return self.row.tag


@transaction.atomic
def begin(run_id: int, gateway: Gateway, *, is_alone: bool = False) -> Attempt | None:
    """Begin a dispatched run on this gateway and return the attempt.

    ``is_alone`` says that the gateway can have no other run meanwhile. Returns None if another
    worker has the run, or the run is no longer wanted.
    """
    now = database_now()
    if not move(
        run_id,
        RunState.DISPATCHED,
        RunState.RUNNING,
        started_at=Coalesce(F("started_at"), now),
        attempt_count=F("attempt_count") + 1,
    ):
        return None
    # A bundle's archive may have megabytes, and only the first run of a version on a host reads it.
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
        engine=run.producer_version.spec.engine,
        spark_session_id=uuid4(),
        was_alone=is_alone,
        started_at=now,
    )
    begin_lease(row)
    # A retried run that has failed in part materializes only the other partitions.
    rows = run.partitions.filter(
        partition__asset=run.asset_id, state=RunPartition.State.PENDING
    ).order_by("position")
    partitions = list(rows.values_list("partition__key", "partition__identity"))
    is_discovering = any(identity == DISCOVERY for _, identity in partitions)
    return Attempt(
        run=run,
        row=row,
        keys=[] if is_discovering else [key for key, _ in partitions],
        unstopped=unstopped_before(row),
        is_discovering=is_discovering,
    )


def losses_of(run_id: int) -> int | None:
    """Return how often a dispatched run has lost its process or worker; None for any other run."""
    runs = Run.objects.filter(pk=run_id, state=RunState.DISPATCHED)
    return runs.values_list("lost_attempts", flat=True).first()


def note_waiting(run_id: int) -> None:
    """Note that a dispatched run has reached a worker, which will begin the run.

    Otherwise the message would be sent again, and another worker would keep slots free for the run
    as well.
    """
    runs = Run.objects.filter(pk=run_id, state=RunState.DISPATCHED)
    runs.update(dispatched_at=database_time())


def needs_spark_server(run_id: int) -> bool:
    """Return whether a dispatched run needs the Spark Connect server: not with engine
    ``submit``.
    """
    runs = Run.objects.filter(pk=run_id, state=RunState.DISPATCHED)
    engines = runs.values_list("producer_version__definition__engine", flat=True)
    return any(engine != SUBMIT for engine in engines)


def decline(run_id: int, pause: timedelta) -> bool:
    """Requeue a dispatched run that this gateway cannot begin; return whether the run was
    requeued.
    """
    return move(
        run_id,
        RunState.DISPATCHED,
        RunState.QUEUED,
        dispatched_at=None,
        not_before=database_time(pause),
    )


def unstopped_before(attempt: RunAttempt) -> list[RunAttempt]:
    """Return earlier attempts at the run that may have left work or data behind.

    Such an attempt has lost its worker, or has failed with a Spark session. The list ends with the
    latest attempt that had a session: that attempt began by clearing away the attempts before.
    """
    if attempt.number == 1:
        return []
    earlier = RunAttempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
    unstopped = []
    for earlier_attempt in earlier.order_by("-number").defer("error", "traceback"):
        had_session = bool(earlier_attempt.application_id)
        failed = earlier_attempt.outcome == AttemptOutcome.FAILED
        if earlier_attempt.outcome == AttemptOutcome.LOST or (failed and had_session):
            unstopped.append(earlier_attempt)
        if had_session:
            break
    return unstopped


@transaction.atomic
def take_over(attempt_id: int, token: str, state: RunState) -> RunAttempt | None:
    """Take over a lost attempt with a new token and the next fencing number.

    So the earlier worker cannot wake up and go on. Returns None if another worker has taken over
    the attempt, or the run is not in ``state``. The row is locked first: of two workers at once,
    the second finds another token.
    """
    lost = RunAttempt.objects.select_for_update(of=("self",)).filter(
        pk=attempt_id, token=token, ended_at__isnull=True, run__state=state
    )
    attempt = lost.first()
    if attempt is not None:
        attempt.token = uuid4()
        attempt.fence += 1
        attempt.save(update_fields=["token", "fence"])
        renew(attempt)
    return attempt


@transaction.atomic
def take_inputs(attempt: Attempt) -> list[UpstreamInput]:
    """Return the inputs of the attempt, and store their present versions with the attempt.

    Raises ValueError if the definitions do not say which upstream partitions are needed.
    """
    AttemptInput.objects.filter(attempt=attempt.row).delete()  # of a try with a lost answer
    if attempt.is_discovering or not attempt.run.producer_version.spec.partition_of(
        attempt.run.asset.name
    ):
        forget_superseded(attempt.run.asset)
        RunAttempt.objects.filter(pk=attempt.row.pk).update(keeps_inputs_of=attempt.run.asset)
    return read_inputs(
        attempt.run, attempt.keys, is_discovering=attempt.is_discovering, attempt=attempt.row
    )


@transaction.atomic
def intend_to_publish(
    attempt: RunAttempt,
    outlets: Sequence[StagedOutlet],
    found_keys: DiscoveredKeys | None = None,
    partly: PartialFailure | None = None,
) -> bool:
    """Commit the intent to publish: the staged outlets, and the keys that are about to be added.

    With ``partly`` the run fails, and only some partitions are published: each of the others
    gets its reason. Partitions that a discovering run has found become the run's own. Returns
    False if the run no longer belongs to this attempt, or is canceled; True also if the intent is
    committed already. Raises DiscoveredKeysHeld, with nothing changed, if another run is
    materializing a partition that this run has written.
    """
    if not still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.RUNNING, RunState.PUBLISHING):
        # By this attempt: a worker that takes over gets another token.
        return Run.objects.filter(pk=attempt.run_id, state=RunState.PUBLISHING).exists()
    store_outlets(attempt, outlets)
    if found_keys:
        RunAttempt.objects.filter(pk=attempt.pk).update(found=found_keys)
        claim_discovered(attempt.run_id, outlets, found_keys)
    for outlet in outlets:
        store_staged(attempt.run_id, outlet)
    if partly is not None:
        store_partial_failure(attempt, partly)
    return True
