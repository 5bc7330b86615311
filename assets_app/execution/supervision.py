"""What a worker's thread does with one run: start the runner, listen to it, and bring the run to
its end.
"""

import math
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings

from assets_app.catalogue.texts import storable
from assets_app.execution import attempts
from assets_app.execution.attempts import Attempt, Failure, FoundKeysHeld
from assets_app.execution.clearing import clear_away
from assets_app.execution.engines import MayGoOn, engine_of
from assets_app.execution.inputs import UpstreamInput
from assets_app.execution.keys import sent_keys
from assets_app.execution.logs import LogKeeper
from assets_app.execution.outputs import Output
from assets_app.execution.past import PastPartitions
from assets_app.execution.publishing import discard_staging, publish
from assets_app.execution.validations import ResultKeeper
from assets_app.execution.worker import GatewayWorker, Watched, current
from assets_app.models import FailureKind, RunAttempt
from partitions_app.models import PartitionDefinition
from slicewise.runner.client import RunnerProcess

log = structlog.get_logger(__name__)

_LISTEN_SECONDS = 0.2


def execute(run_id: int) -> None:
    """Execute a dispatched run on this worker; nothing happens if it is no longer dispatched."""
    worker = current()
    if worker.going_down.is_set():
        return
    attempt = attempts.begin(run_id, worker.gateway)
    if attempt is None:
        return
    try:
        spark = engine_of(attempt.row).facts(attempt)
        inputs = attempts.take_inputs(attempt)
    except ValueError as error:
        # No such engine here, definitions that do not fit each other, or the keys: another try
        # would say the same.
        attempts.fail(attempt.row, Failure(error=str(error)))
        return
    try:
        process = _launch(worker, attempt, inputs, spark)
    except Exception as error:  # whatever kept the runner from starting is the platform's
        log.exception("runner not started", run=run_id)
        attempts.fail(
            attempt.row,
            Failure(error=f"The runner could not be started: {error}", kind=FailureKind.PLATFORM),
        )
        return
    if process is None:
        log.warning("lease lost before the runner was started", run=run_id)
        return
    _Supervision(worker, attempt, process).follow()


def _launch(
    worker: GatewayWorker,
    attempt: Attempt,
    inputs: Sequence[UpstreamInput],
    spark: dict[str, Any],
) -> RunnerProcess | None:
    """Start the runner once nothing of earlier attempts goes on; None if the lease was lost.

    The heartbeat renews the lease of what runs. What comes before may take as long as the lease
    lasts, so that it is renewed here.
    """
    request = _request(attempt, inputs, spark)
    for earlier in attempt.unstopped:
        if not attempts.renew(attempt.row):
            return None
        clear_away(worker.parent, earlier, attempt.run.producer_version)
    worker.parent.start()
    return worker.parent.launch(request) if attempts.renew(attempt.row) else None


def _request(
    attempt: Attempt, inputs: Sequence[UpstreamInput], spark: dict[str, Any]
) -> dict[str, Any]:
    run, row = attempt.run, attempt.row
    version, names = run.producer_version, row.disk_names(run.producer_version)
    spec = version.partition_of(run.asset.name)
    return {
        "run_id": run.pk,
        "attempt": row.number,
        "attempt_name": row.name_on_disk,
        "token": str(row.token),
        "trigger": run.trigger,
        "params": run.params,
        "logical_time": (run.queued_at or run.created_at).isoformat(),
        "bundle": {
            "digest": version.bundle_version.digest,
            "archive": str(_cached_archive(attempt)),
        },
        "file": version.file,
        "asset": run.asset.name,
        "outlets": [
            {"name": name, "uri": uri or None, "attempt_name": names[name]}
            for name, uri in version.outlets.items()
        ],
        "partition": spec,
        "partitions": sent_keys(PartitionDefinition.rule_of(spec), attempt.keys),
        "strategy": version.strategy,
        "upstreams": {piece.asset.name: piece.to_json() for piece in inputs if piece.is_inlet},
        "spark": spark,
        "log_limit": settings.LOG_LIMIT_BYTES,
        # The code ends before its lease can: it never runs beside the attempt that takes over.
        "watchdog": settings.LEASE_SECONDS * 2 / 3,
    }


def _cached_archive(attempt: Attempt) -> Path:
    """The bundle version's archive in a file of this host, written once per digest."""
    version = attempt.run.producer_version.bundle_version
    folder = settings.DATA_FOLDER / "archives"
    archive: Path = folder / f"{version.digest}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{version.digest}.{os.getpid()}.{attempt.row.token}"
        unfinished.write_bytes(bytes(version.archive))
        unfinished.rename(archive)
    return archive


def _deadline(attempt: Attempt) -> float:
    """When the attempt has run for as long as its asset allows, on the monotonic clock."""
    allowed = attempt.run.producer_version.definition.get("timeout")
    return math.inf if allowed is None else time.monotonic() + float(allowed)


class _Supervision:
    """One attempt while its runner lives."""

    def __init__(self, worker: GatewayWorker, attempt: Attempt, process: RunnerProcess) -> None:
        self.worker = worker
        self.attempt: RunAttempt = attempt.row
        self.process = process
        self.watched = Watched(attempt.row, process)
        self.log = LogKeeper(attempt.row)
        self.past = PastPartitions(attempt)
        self.validations = ResultKeeper(attempt)
        self.version = attempt.run.producer_version
        self.deadline = _deadline(attempt)
        self.output = Output(attempt.run, attempt.row)
        self.failure: Failure | None = None
        self.finished = False
        self.session_opened = False
        self.exited: dict[str, Any] = {}

    def follow(self) -> None:
        """Listen until the runner's process is gone, then conclude."""
        self.worker.watch(self.watched)
        try:
            for message in self.process.messages(timeout=_LISTEN_SECONDS):
                self._hear(message)
                self._obey()
            self.log.flush()
            self._conclude()
        finally:
            self.worker.unwatch(self.attempt)
            self.process.kill()
            engine_of(self.attempt).tidy(self.attempt)

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "log":
                self.log.add(message["text"])
            case "spark":
                self.session_opened = True
                self._keep_application(message)
            case "ask":
                self.process.answer(self.past.answer(message))
            case "validated":
                self.validations.hear(message)
            case "staged" | "discovered":
                self._take_output(message)
            case "failed":
                self.failure = Failure(
                    error=message["error"],
                    traceback=message["traceback"],
                    kind=FailureKind(message["kind"]),
                )
            case "finished":
                self.finished = True
            case "exited":
                self.exited = message
            case _:
                self.log.flush_if_due()

    def _take_output(self, message: dict[str, Any]) -> None:
        take = self.output.take_staged if message["type"] == "staged" else self.output.take_found
        try:
            take(message)
        except (ValueError, TypeError, KeyError) as error:  # user code shares the runner's channel
            self.failure = self.failure or Failure(error=str(error))

    def _keep_application(self, message: dict[str, Any]) -> None:
        if not message["application_id"]:
            return  # the session is only about to be opened
        RunAttempt.objects.filter(pk=self.attempt.pk).update(
            application_id=storable(message["application_id"])[:200],
            application_ui=storable(message["ui"] or settings.SPARK_UI_URL)[:500],
        )

    def _obey(self) -> None:
        """Stop the runner if its run was canceled or is taking too long, or this worker may not."""
        watched = self.watched
        if (
            (time.monotonic() > self.deadline and not self.finished)
            or watched.cancel_requested.is_set()
            or watched.lease_lost.is_set()
            or (self.worker.going_down.is_set() and not self.finished)
        ):
            self.process.kill()

    def _conclude(self) -> None:
        if self.watched.lease_lost.is_set():
            # Somebody else has the run. Its Spark session is theirs to interrupt; the staging is
            # not.
            discard_staging(self.attempt, self.version)
        elif self.watched.cancel_requested.is_set():
            # Else its lease runs out, and recovery has it tried again.
            if self._clear_away():
                attempts.cancel(self.attempt)
        elif self.finished and self.failure is None:
            self._publish()
        elif self.failure is None and self.worker.going_down.is_set():
            self._hand_back()
        else:
            self._fail(self.failure or self._unexplained_end())

    def _publish(self) -> None:
        outlets = self.output.outlets()
        try:
            intended = attempts.intend_to_publish(self.attempt, outlets, self.output.found)
        except FoundKeysHeld as error:
            self._fail(Failure(error=str(error), kind=FailureKind.PLATFORM))
            return
        if intended:
            publish(self.attempt, outlets)
        else:
            # Canceled at the last moment, or taken over.
            attempts.cancel(self.attempt)
            discard_staging(self.attempt, self.version)

    def _hand_back(self) -> None:
        # In any case: what could not be stopped is stopped by the next attempt.
        is_cleared = self._clear_away()
        if not attempts.hand_back(self.attempt, "Its worker was asked to end.") and is_cleared:
            # It was canceled meanwhile.
            attempts.cancel(self.attempt)

    def _fail(self, failure: Failure) -> None:
        is_cleared = self._clear_away()
        if not attempts.fail(self.attempt, failure) and is_cleared:
            # It was canceled while it failed.
            attempts.cancel(self.attempt)

    def _clear_away(self) -> bool:
        """Whether nothing of the attempt goes on any more."""
        try:
            clear_away(
                self.worker.parent,
                self.attempt,
                self.version,
                has_session=self._may_have_session(),
            )
        except MayGoOn as error:
            log.warning("work on Spark not stopped", run=self.attempt.run_id, error=str(error))
            return False
        return True

    def _may_have_session(self) -> bool:
        """A runner whose code fails closes its session itself, unless it is killed before."""
        failure = self.failure
        by_code = failure is not None and failure.kind is FailureKind.CODE
        return self.session_opened and not (by_code and not self.exited.get("signal"))

    def _unexplained_end(self) -> Failure:
        if time.monotonic() > self.deadline:
            limit = self.attempt.run.producer_version.definition["timeout"]
            return Failure(error=f"It ran longer than its timeout of {limit:g} s and was stopped.")
        number = self.exited.get("signal")
        if number:
            name = signal.Signals(number).name
            # Nobody's code ends itself so: the machine was out of memory, or somebody did it.
            killed = number == signal.SIGKILL
            return Failure(
                error=f"The process of the run was ended by {name} before it had finished.",
                kind=FailureKind.PLATFORM if killed else FailureKind.CODE,
            )
        status = self.exited.get("status")
        return Failure(error=f"The process of the run ended by itself with status {status}.")
