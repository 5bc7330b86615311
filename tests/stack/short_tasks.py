"""A Celery app with Slicewise's worker step and one short task, for tests of the worker."""

from __future__ import annotations

import os
import time

import redis
from celery import Celery

from slicewise_server.celery import LookAgain

DONE = "short-tasks-done"

app = Celery("short_tasks", broker=os.environ["REDIS_URL"])
app.conf.update(task_ignore_result=True, worker_disable_prefetch=True, task_default_queue="short")
app.steps["worker"].add(LookAgain)


@app.task
def short(number: int) -> None:
    """Take a moment, then count."""
    time.sleep(0.01)
    redis.Redis.from_url(os.environ["REDIS_URL"]).rpush(DONE, number)
