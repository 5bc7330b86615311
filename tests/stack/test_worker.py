"""How a worker takes messages."""

from __future__ import annotations

import os
import subprocess
import sys

import redis

from slicewise_server.stack.services import Services
from slicewise_server.stack.supervision import wait_for

MESSAGES = 200


def test_a_full_worker_asks_for_the_next_message_as_soon_as_it_has_room(services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    from tests.stack.short_tasks import DONE, short

    worker = subprocess.Popen(
        [
            *[sys.executable, "-m", "celery", "-A", "tests.stack.short_tasks", "worker"],
            *["-P", "threads", "-c", "1", "-Q", "short", "--without-gossip", "--without-mingle"],
        ],
        env={**os.environ, "REDIS_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    client = redis.Redis.from_url(url)
    try:
        short.delay(0)
        wait_for(lambda: client.llen(DONE) == 1, "the worker", seconds=120)
        for number in range(1, MESSAGES):
            short.delay(number)
        # A worker that only looks once a second would take 200 s.
        wait_for(lambda: client.llen(DONE) == MESSAGES, "all messages", seconds=120)
        assert [int(n) for n in client.lrange(DONE, 0, -1)] == list(range(MESSAGES))
    finally:
        worker.kill()
        worker.wait()
