"""One worker process on a gateway: its row, its leases, and the warm parent its runners are forked
from.
"""

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
from assets_app.execution.company import Company
from assets_app.execution.database import use_own_connection
from assets_app.execution.engines import is_spark_server_there, tidy_host
from assets_app.execution.leases import renew_all
from assets_app.execution.runner_user import (
    own_folder,
    refuse_closed_python,
    runner_user,
    slot_users,
)
from assets_app.models import Gateway, RunAttempt, RunState
from assets_app.queries.clock import database_now
from slicewise.runner.client import RunnerProcess, WarmParent

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Watched:
    """An attempt in the hands of this worker: its thread is told of it by the heartbeat, never the
    other way round.
    """

    attempt: RunAttempt
    # None before its code runs, and where a publication is finished.
    process: RunnerProcess | None = None
    cancel_requested: threading.Event = field(default_factory=threading.Event)
    lease_lost: threading.Event = field(default_factory=threading.Event)


class GatewayWorker:
    """What the threads of one worker process share.

    The warm parent is started by the thread that makes this object, which must be the main one:
    the parent is to die with it.
    """

    def __init__(self, name: str, queue: str, slots: int) -> None:
        user, users = runner_user(), slot_users(slots)
        # A folder may be open to the user of the setting alone, who may be the folder's owner.
        one_of_each = [user, users.first if users is not None else None]
        refuse_closed_python(each for each in one_of_each if each is not None)
        self.parent = WarmParent(
            env=user_code_environment(),
            cache=own_folder("bundles"),
            user=user,
            slot_users=users,
        )
        self.parent.start()
        self.company = Company(slots, settings.SUSPECT_AFTER_LOSSES)
        self.going_down = threading.Event()
        self.spark_away = threading.Event()
        self._closed = threading.Event()
        # By token: who held an attempt before may still be about to notice that it does no more.
        self._watched: dict[UUID, Watched] = {}
        self._lock = threading.Lock()
        tidy_host()
        self.gateway = self._register(name, queue, slots)
        self._heart = threading.Thread(target=self._live, name="heartbeat", daemon=True)
        self._heart.start()
        threading.Thread(target=self._watch_spark, name="spark-watch", daemon=True).start()

    @contextmanager
    def watching(self, attempt: RunAttempt) -> Iterator[Watched]:
        """Renew the lease of this attempt meanwhile."""
        watched = Watched(attempt)
        with self._lock:
            self._watched[attempt.token] = watched
        try:
            yield watched
        finally:
            with self._lock:
                self._watched.pop(attempt.token, None)

    def drain(self) -> None:
        """Take nothing more, and have the supervisors hand back what they hold."""
        self.going_down.set()

    def close(self) -> None:
        """The process ends: its row says so, and the warm parent goes."""
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
        """Check whether the Spark server answers: a run that begins while it is away only fails.

        A single check without an answer may be an accident.
        """
        failures = 0
        while not self._closed.wait(settings.SPARK_CHECK_SECONDS):
            failures = 0 if is_spark_server_there() else failures + 1
            if failures == 0 and self.spark_away.is_set():
                log.info("the Spark server answers again")
                self.spark_away.clear()
            elif failures > 1 and not self.spark_away.is_set():
                log.warning("the Spark server does not answer: no run that needs it is begun")
                self.spark_away.set()

    def _live(self) -> None:
        """Send heartbeats until the process is to end; if they stop before, end it at once.

        It would take messages, and lose each run that it begins.
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
            # Who is asked to end says so at once, and goes on renewing what it brings to an end.
            awaited = self._closed if self.going_down.is_set() else self.going_down
            awaited.wait(_HEARTBEAT_SECONDS)
            try:
                self._renew(database_now())
            except Exception as error:
                # No ping goes out: runners whose lease cannot be renewed end themselves in time.
                log.warning("heartbeat failed", extra={"error": str(error)})
                connection.close()

    def _renew(self, now: datetime) -> None:
        away = Coalesce("spark_away_since", now) if self.spark_away.is_set() else None
        Gateway.objects.filter(pk=self.gateway.pk).update(
            last_seen=now,
            draining=self.going_down.is_set(),
            spark_away_since=away,
            closed_slots=self.company.closed_slots,
        )
        with self._lock:
            watched = list(self._watched.values())
        if not watched:
            return
        states = renew_all(piece.attempt for piece in watched)
        for piece in watched:
            state = states.get(piece.attempt.token)
            if state is None:
                piece.lease_lost.set()
                continue
            if state == RunState.CANCELING:
                piece.cancel_requested.set()
            if piece.process is not None:
                piece.process.ping()


_worker: GatewayWorker | None = None


class NoGateway(RuntimeError):
    """This process serves no queue of runs."""


def start(name: str, queue: str, slots: int) -> None:
    """Make this process a gateway's worker; once, from its main thread."""
    global _worker
    _worker = GatewayWorker(name, queue, slots)


def current() -> GatewayWorker:
    """This process's worker; NoGateway where there is none."""
    if _worker is None:
        raise NoGateway("Runs are executed by workers of the queues scheduled and backfill.")
    return _worker


def drain() -> None:
    """Called when the process has been asked to end."""
    if _worker is not None:
        _worker.drain()


def stop() -> None:
    """Called when the process ends."""
    if _worker is not None:
        _worker.close()
