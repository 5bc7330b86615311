"""Jobs of Spark, read from Spark's own interface."""

import json
import urllib.request
from typing import Any

from slicewise_server.stack.stack import Stack


class Spark:
    """Spark's own account of its work."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/v1/applications"

    def jobs(self, status: str) -> list[Any]:
        (application,) = self._get("")
        jobs: list[Any] = self._get(f"/{application['id']}/jobs?status={status}")
        return jobs

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=60) as response:
            return json.load(response)


def jobs_of(stack: Stack, run: int, attempt: int) -> list[object]:
    """Return the jobs that Spark runs for an attempt, by Spark's own account."""
    tag = f"slicewise-run-{run}-{attempt}"
    running = Spark(stack.environment()["SPARK_UI_URL"]).jobs("running")
    return [job for job in running if any(tag in job_tag for job_tag in job["jobTags"])]
