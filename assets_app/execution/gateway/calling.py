"""Calls of ``on_success`` and ``on_failure`` in a runner after a run; a begun call is never
repeated.
"""

import logging
import signal
import time
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError

from assets_app.execution.attempt.logs import LogKeeper
from assets_app.execution.database import release_connection
from assets_app.execution.gateway.launching import facts_of_run
from assets_app.execution.gateway.worker import current
from assets_app.models import DISCOVERY, HookOption, RunAttempt, RunHook
from assets_app.queries.clock import database_now
from slicewise.runner.parent_client import RequestTooLargeError, RunnerProcess, WarmParentError

log = logging.getLogger(__name__)

CALL_SECONDS = 60.0
# A worker may for a while lack data that a request takes: for so long another worker may be asked.
GIVE_UP_AFTER = timedelta(hours=1)
_LISTEN_SECONDS = 0.2
_PING_SECONDS = 1.0
_WATCHDOG_SECONDS = 15.0
# After all blocks that the run itself has printed: a worker that was taken for lost may still
# write.
_LOG_FROM = 1_000_000_000


def call_hook(hook_id: int) -> None:
    """Call the function that an asset declares for after a run, unless a worker has begun to.

    A failure before the call begins is tried again when workers get the message again; a request
    that cannot be built is given up an hour after the attempt's end. Later failures are written to
    the log of the run's attempt, and change nothing else.
    """
    worker = current()
    if worker.going_down.is_set():
        return
    rows = RunHook.objects.select_related(
        "attempt__run__asset", "attempt__run__producer_version__bundle_version"
    ).defer("attempt__run__producer_version__bundle_version__archive")
    hook = rows.filter(pk=hook_id, begun_at__isnull=True).first()
    if hook is None:
        return
    try:
        request = _request(hook)
    except (DatabaseError, InterfaceError):
        raise
    except Exception as error:
        if not _is_overdue(hook.attempt):
            raise
        _give_up(hook, error)
        return
    worker.parent.start()
    if not _claim(hook):
        return
    name = hook.attempt.run.producer_version.spec.hook_name(hook.option)
    release_connection()
    keeper = LogKeeper(hook.attempt, after=_LOG_FROM)
    keeper.add(f"[{hook.option}: {name} is called]\n")
    try:
        failure = _Call(worker.parent.call_hook(request), keeper).follow()
    except (WarmParentError, RequestTooLargeError) as error:
        failure = f"could not be called: {error}"
    if failure:
        log.warning(
            "function after a run failed", extra={"run": hook.attempt.run_id, "option": hook.option}
        )
        keeper.add(f"[{hook.option} {failure}]\n")
    keeper.flush()


def _is_overdue(attempt: RunAttempt) -> bool:
    return attempt.ended_at is not None and database_now() - attempt.ended_at > GIVE_UP_AFTER


def _give_up(hook: RunHook, error: Exception) -> None:
    """Mark the function as called without a call, and write the reason to the attempt's log."""
    if not _claim(hook):
        return
    log.error("function after a run not called", extra={"run": hook.attempt.run_id}, exc_info=error)
    keeper = LogKeeper(hook.attempt, after=_LOG_FROM)
    keeper.add(f"[{hook.option} was not called: {type(error).__name__}: {error}]\n")
    keeper.flush()


def _claim(hook: RunHook) -> bool:
    unclaimed = RunHook.objects.filter(pk=hook.pk, begun_at__isnull=True)
    return unclaimed.update(begun_at=database_now()) == 1


def _request(hook: RunHook) -> dict[str, Any]:
    attempt = hook.attempt
    run, version = attempt.run, attempt.run.producer_version
    # All partitions of the run, also those that an earlier attempt has materialized.
    run_partitions = run.partitions.filter(partition__asset=run.asset_id).exclude(
        partition__identity=DISCOVERY
    )
    keys = run_partitions.order_by("position").values_list("partition__key", flat=True)
    return {
        **facts_of_run(attempt, keys),
        "hook": hook.option,
        "error": attempt.error if hook.option == HookOption.ON_FAILURE else None,
        "outlets": [{"name": name, "uri": uri or None} for name, uri in version.outlets.items()],
        "watchdog": _WATCHDOG_SECONDS,
    }


class _Call:
    """A call of one function while its runner lives."""

    def __init__(self, process: RunnerProcess, keeper: LogKeeper) -> None:
        self._process, self._keeper = process, keeper
        self._deadline = time.monotonic() + CALL_SECONDS
        self._pinged = time.monotonic()
        self._finished = False
        self._failure = ""
        self._exited: dict[str, Any] = {}

    def follow(self) -> str:
        """Handle messages until the runner's process is gone; return the failure, if any."""
        try:
            for message in self._process.messages(timeout=_LISTEN_SECONDS):
                self._hear(message)
                self._keep_alive()
        except BaseException:
            self._process.kill()
            raise
        return self._failure or ("" if self._finished else self._unexplained_end())

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "log":
                self._keeper.add(message["text"])
            case "failed":
                self._keeper.add((message["traceback"] or message["error"]).rstrip() + "\n")
                self._failure = f"failed: {message['error']}"
            case "finished":
                self._finished = True
            case "exited":
                self._exited = message
            case _:
                self._keeper.flush_if_due()

    def _keep_alive(self) -> None:
        """Keep the runner alive by pings, and kill the runner once the call has taken too long."""
        now = time.monotonic()
        if now > self._deadline:
            self._process.kill()
        elif now - self._pinged > _PING_SECONDS:
            self._pinged = now
            self._process.ping()

    def _unexplained_end(self) -> str:
        if time.monotonic() > self._deadline:
            return f"took longer than {CALL_SECONDS:g} s and was stopped"
        if excess := self._exited.get("excess"):
            return f"was stopped: {excess}"
        if number := self._exited.get("signal"):
            return f"was ended by {signal.Signals(number).name} before it had finished"
        return f"ended its process with status {self._exited.get('status')} before it had finished"
