"""The ASGI application: reads a request, runs Django in a thread, sends the answer."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Any

from slicewise_server.serving import bodies, slow_readers
from slicewise_server.serving.answers import Answer, Send, Wsgi
from slicewise_server.serving.environ import environ, without_underscores
from slicewise_server.serving.lanes import Busy, Lane
from slicewise_server.serving.limits import Limits
from slicewise_server.serving.long_poll import (
    NO_PLACE_SECONDS,
    PAUSE_SECONDS,
    POSITION,
    Client,
    Polls,
    Wait,
    take_wait,
)
from slicewise_server.serving.spool import NoRoom, Room, Spool

log = logging.getLogger(__name__)
_READS = ("GET", "HEAD")
_LOG_PAUSE_SECONDS = 10.0


class Application:
    """An ASGI application that serves a WSGI application without threads for slow clients."""

    def __init__(self, application: Wsgi, limits: Limits) -> None:
        self._application = application
        self._limits = limits
        self._pages = Lane("web", limits.threads, limits.waiting, limits.patience)
        self._health = Lane("health", limits.health_threads, limits.waiting, limits.patience)
        self._metrics = Lane(
            "metrics", limits.metrics_threads, limits.metrics_waiting, limits.patience
        )
        self._files = Lane("files", limits.file_threads, limits.files_waiting, limits.patience)
        self._bodies = Room(limits.bodies_in_memory, limits.bodies_on_disk)
        self._answers = Room(limits.answers_in_memory, limits.answers_on_disk)
        self._polls = Polls(limits.polls)
        self._watch: asyncio.Task[None] | None = None
        self._logged_at = 0.0

    async def __call__(self, scope: dict[str, Any], receive: bodies.Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        if self._watch is None:
            self._watch = asyncio.create_task(
                slow_readers.watch(self._limits.reader_rate, self._limits.reader_time)
            )
        headers = without_underscores(scope["headers"])
        lane = self._lane(scope["path"], scope["method"])
        with Spool(self._bodies) as body, Spool(self._answers) as spool:
            answer = Answer(spool)
            try:
                size = 0
                if lane is self._pages:
                    size = await bodies.read(receive, headers, body, self._limits)
            except bodies.ClientDisconnected:
                return
            except bodies.BodyTimeout:
                answer.refuse(scope["path"], 408, "The body of the request came too slowly.")
                answer.complete()
            except NoRoom:
                self._refuse_busy(scope["path"], answer)
                answer.complete()
            else:
                request = environ(scope, headers, body.whole(), size)
                await self._run(lane, request, answer, Client(receive), send)
                return
            await answer.send(scope["method"], send)

    async def _run(
        self, lane: Lane, request: dict[str, Any], answer: Answer, client: Client, send: Send
    ) -> None:
        """Have a thread write the answer, and send it; a long answer is sent while written."""
        try:
            await self._begin(lane, request, answer)
            if await self._wait_for_news(lane, request, answer, client):
                await answer.send(request["REQUEST_METHOD"], send)
        finally:
            client.close()
            # The thread writes into the spools that are closed next.
            while not answer.is_complete:
                answer.written.clear()
                await answer.written.wait()

    async def _begin(self, lane: Lane, request: dict[str, Any], answer: Answer) -> None:
        """Have a thread begin the answer, and wait until the answer has a start."""
        try:
            lane.begin(partial(self._work, request, answer), then=answer.complete)
        except Busy:
            self._refuse_busy(request["PATH_INFO"], answer)
            answer.complete()
        await answer.written.wait()

    async def _wait_for_news(
        self, lane: Lane, request: dict[str, Any], answer: Answer, client: Client
    ) -> bool:
        """Ask Django again, now and then, as long as the answer says that there is no news yet.

        Return False if the client has gone.
        """
        wait, began = take_wait(answer.headers) if answer.is_complete else Wait(), time.monotonic()
        if not wait.seconds:
            return True
        if not self._polls.begin():
            return not await client.goes_away_within(NO_PLACE_SECONDS)
        seconds = wait.seconds
        try:
            while wait.seconds and time.monotonic() - began < seconds:
                if await client.goes_away_within(PAUSE_SECONDS):
                    return False
                answer.reset()
                await self._begin(lane, {**request, POSITION: wait.position}, answer)
                wait = take_wait(answer.headers) if answer.is_complete else Wait()
        finally:
            self._polls.end()
        return True

    def _work(self, request: dict[str, Any], answer: Answer, is_late: bool) -> None:
        """Run Django in this thread; after the start is sent an error breaks the answer off."""
        path = request["PATH_INFO"]
        try:
            if is_late:
                self._refuse_busy(path, answer)
            else:
                answer.take(self._application, request)
        except NoRoom:
            self._refuse_busy(path, answer)
        except Exception:
            log.exception("request failed", extra={"path": path})
            answer.refuse(path, 500, "Something broke on our side.")

    def _lane(self, path: str, method: str) -> Lane:
        """Return the lane of a request: reads of health, metrics and static files do not wait for
        pages.
        """
        if method in _READS and path == self._limits.health:
            return self._health
        if method in _READS and path == self._limits.metrics:
            return self._metrics
        if method in _READS and path.startswith(self._limits.static):
            return self._files
        return self._pages

    def _refuse_busy(self, path: str, answer: Answer) -> None:
        answer.refuse(path, 503, "The server has too much to do.", retry_after=1)
        self._note_busy(path)

    def _note_busy(self, path: str) -> None:
        now = time.monotonic()
        if now - self._logged_at > _LOG_PAUSE_SECONDS:
            self._logged_at = now
            log.warning("request refused: the server is busy", extra={"path": path})
