"""A worker process of a gateway: its row, its leases, and the warm parent of its runners."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Coalesce

from assets_app.catalogue.loading import user_code_environment
from assets_app.execution.attempt.engines import accepts_spark_connections, tidy_host
from assets_app.execution.attempt.leases import renew_all
from assets_app.execution.data.runner_user import (
    own_folder,
    refuse_closed_python,
    runner_user,
    slot_users,
)
from assets_app.execution.database import use_own_connection
from assets_app.execution.gateway.concurrent_runs import ConcurrentRuns
from assets_app.execution.gateway.run_cgroups import run_groups
from assets_app.models import Gateway, RunAttempt, RunState
from assets_app.queries.clock import database_now
from slicewise.runner.parent_client import RunnerProcess, WarmParent

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Watched:
    """An attempt that this worker executes.

    The heartbeat reports changes to the attempt's thread, never the other way round.
    """

    attempt: RunAttempt
    # None before user code runs, and where a publication is finished.
    process: RunnerProcess | None = None
    cancel_requested: threading.Event = field(default_factory=threading.Event)
    lease_lost: threading.Event = field(default_factory=threading.Event)


class GatewayWorker:
    """The state that the threads of one worker process share.

    The warm parent is started by the thread that creates this object. That must be the main thread,
    since the parent ends with the thread.
    """

    def __init__(self, name: str, queue: str, slots: int) -> None:
        user, users = runner_user(), slot_users(slots)
        # A folder may be open to the user of the setting alone, who may own the folder.
        user_samples = [user, users.first if users is not None else None]
        refuse_closed_python(sample for sample in user_samples if sample is not None)
        self.parent = WarmParent(
            env=user_code_environment(),
            cache=own_folder("bundles"),
            user=user,
            slot_users=users,
            groups=run_groups(),
        )
        self.parent.start()
        self.concurrent_runs = ConcurrentRuns(slots, settings.SUSPECT_AFTER_LOSSES)
        self.going_down = threading.Event()
        self.spark_away = threading.Event()
        self._closed = threading.Event()
        # By token: a thread that held an attempt before may be about to notice the loss of its
        # lease.
        self._watched: dict[UUID, Watched] = {}
        self._lock = threading.Lock()
        tidy_host()
        self.gateway = self._register(name, queue, slots)
        self._heart = threading.Thread(target=self._live, name="heartbeat", daemon=True)
        self._heart.start()
        threading.Thread(target=self._watch_spark, name="spark-watch", daemon=True).start()

    @contextmanager
    def watching(self, attempt: RunAttempt) -> Iterator[Watched]:
        """Renew the lease of this attempt during the block."""
        watched = Watched(attempt)
        with self._lock:
            self._watched[attempt.token] = watched
        try:
            yield watched
        finally:
            with self._lock:
                self._watched.pop(attempt.token, None)

    def drain(self) -> None:
        """Take no more runs, and have the supervisors requeue the present runs."""
        self.going_down.set()

    def close(self) -> None:
        """Mark the gateway as draining and close the warm parent, since the process ends."""
        self.drain()
        self._closed.set()
        try:
            Gateway.objects.filter(pk=self.gateway.pk).update(draining=True)
        except DatabaseError as error:
            log.warning("gateway not signed off", extra={"error": str(error)})
        self.parent.close()

    def _register(self, name: str, queue: str, slots: int) -> Gateway:
        now = database_now()
        gateway, _ = Gateway.objects.update_or_create(
            name=name,
            defaults={
                "host": socket.gethostname(),
                "process_id": os.getpid(),
                "queue": queue,
                "slots": slots,
                "started_at": now,
                "last_seen": now,
                "draining": False,
                "spark_away_since": None,
                "closed_slots": 0,
            },
        )
        return gateway

    def _watch_spark(self) -> None:
        """Check whether the Spark server answers: runs that begin while it is away only fail.

        A single check without an answer may be an accident.
        """
        failures = 0
        while not self._closed.wait(settings.SPARK_CHECK_SECONDS):
            failures = 0 if accepts_spark_connections() else failures + 1
            if failures == 0 and self.spark_away.is_set():
                log.info("the Spark server answers again")
                self.spark_away.clear()
            elif failures > 1 and not self.spark_away.is_set():
                log.warning("the Spark server does not answer: no run that needs it is begun")
                self.spark_away.set()

    def _live(self) -> None:
        """Send heartbeats until the process is to end; end the process if heartbeats stop before.

        Without heartbeats the worker would take messages, and lose each run that the worker begins.
        """
        use_own_connection()
        try:
            self._beat()
        finally:
            if not self._closed.is_set():
                log.critical("the heartbeat has stopped, and so this worker ends")
                os._exit(1)

    def _beat(self) -> None:
        while not self._closed.is_set():
            # A worker that is asked to end stores that at once, and goes on renewing leases until
            # its runs end.
            awaited = self._closed if self.going_down.is_set() else self.going_down
            awaited.wait(_HEARTBEAT_SECONDS)
            try:
                self._renew(database_now())
            except Exception as error:
                # No ping is sent: runners without a renewed lease end themselves in time.
                log.warning("heartbeat failed", extra={"error": str(error)})
                connection.close()

    def _renew(self, now: datetime) -> None:
        away = Coalesce("spark_away_since", now) if self.spark_away.is_set() else None
        Gateway.objects.filter(pk=self.gateway.pk).update(
            last_seen=now,
            draining=self.going_down.is_set(),
            spark_away_since=away,
            closed_slots=self.concurrent_runs.closed_slots,
        )
        with self._lock:
            watched = list(self._watched.values())
        if not watched:
            return
        states = renew_all(watched_attempt.attempt for watched_attempt in watched)
        for watched_attempt in watched:
            state = states.get(watched_attempt.attempt.token)
            if state is None:
                watched_attempt.lease_lost.set()
                continue
            if state == RunState.CANCELING:
                watched_attempt.cancel_requested.set()
            if watched_attempt.process is not None:
                watched_attempt.process.ping()


_worker: GatewayWorker | None = None


class NoGateway(RuntimeError):
    """This process serves no queue of runs."""


def start(name: str, queue: str, slots: int) -> None:
    """Start the gateway's worker in this process; once, from the main thread."""
    global _worker
    _worker = GatewayWorker(name, queue, slots)


def current() -> GatewayWorker:
    """Return the worker of this process; raise NoGateway in a process without a worker."""
    if _worker is None:
        raise NoGateway("Runs are executed by workers of the queues scheduled and backfill.")
    return _worker


def drain() -> None:
    """Stop taking runs, since the process was asked to end."""
    if _worker is not None:
        _worker.drain()


def stop() -> None:
    """Close the worker, since the process ends."""
    if _worker is not None:
        _worker.close()
