"""Row 19: a backfill of a million partitions is looked at and steered while its runs are claimed
and recorded, some of which fail.

The figures are for a machine without other work. `python -m bench.million` measures such a backfill
by itself.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ENDED
from tests.faults.conftest import Recovered
from tests.faults.page_visits import Pages
from tests.faults.stack_processes import Crew, until
from tests.threads import repeated

pytestmark = pytest.mark.fault(19)

PARTITIONS, IN_A_RUN = 1_000_000, 50_000
_AT_MOST_SECONDS = 1.0
_PATIENCE_SECONDS = 900.0
_FRAGMENTS = ("", "progress/", "details/", "cells/", "record/")
_READ = ("", "outcome/", "partitions/?state=failed", "partitions/?state=active")


class Answer(NamedTuple):
    """A request, and the seconds that its answer took."""

    seconds: float
    request: str


@dataclass
class Person:
    """A person with a page of the backfill, who also controls the backfill by the API."""

    api: Client
    pages: Pages
    address: str
    answers: list[Answer] = field(default_factory=list)

    def look(self) -> None:
        """Ask once for the page, its fragments and the API's resources."""
        for fragment in _FRAGMENTS:
            address = self.address + fragment
            self._timed(f"page {fragment}", partial(self.pages.text, address))
        for path in _READ:
            self._timed(f"GET {path}", partial(self.api.get, self.address + path))

    def post(self, verb: str, **body: Any) -> Any:
        """Send a request about the backfill."""
        return self._timed(verb, lambda: self.api.post(f"{self.address}{verb}/", **body))

    def change(self, **fields: Any) -> None:
        """Change the backfill."""
        self._timed(f"change {fields}", lambda: self.api.patch(self.address, **fields))

    def delete(self) -> None:
        """Delete the backfill."""
        self._timed("delete", lambda: self.api.delete(self.address))

    def state(self) -> dict[str, Any]:
        """Return the present state of the backfill."""
        state: dict[str, Any] = self._timed("GET", lambda: self.api.get(self.address))
        return state

    def steer(self, seconds: float) -> None:
        """Pause, change and resume the backfill, with a pause of so many seconds."""
        self.post("pause")
        self.change(order="newest", max_active_runs=2)
        time.sleep(seconds)
        self.change(order="oldest", priority=1)
        self.change(max_active_runs=4)
        self.post("resume")

    def _timed(self, request: str, ask: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = ask()
        self.answers.append(Answer(time.monotonic() - began, request))
        return answer

    def late_answers(self) -> list[str]:
        return [
            f"{request}: {seconds:.2f} s"
            for seconds, request in sorted(self.answers, reverse=True)
            if seconds >= _AT_MOST_SECONDS
        ]


@pytest.mark.rounds
def test_nobody_waits_for_a_second_while_a_backfill_of_a_million_partitions_runs(
    crew: Crew, api: Client, recovered: Recovered
) -> None:
    last = datetime(2000, 1, 1) + timedelta(minutes=PARTITIONS - 1)
    backfill = api.post(
        "/backfills/",
        asset="minutes",
        start="2000-01-01T00:00Z",
        end=f"{last:%Y-%m-%dT%H:%MZ}",
        existing="all",
        max_active_runs=4,
    )
    assert (backfill["counts"]["total"], backfill["strategy"]) == (PARTITIONS, IN_A_RUN)
    person = Person(api, Pages(crew.stack), f"/backfills/{backfill['id']}/")

    with repeated(person.look, every=0.2):
        until(
            lambda: person.state()["counts"]["failed"],
            "a run has failed",
            seconds=_PATIENCE_SECONDS,
        )
        for round_number in range(6):
            person.steer(round_number / 2)
            if round_number % 3 == 0 and person.state()["counts"]["failed"]:
                person.post("retry-failed")
            time.sleep(2)
        until(lambda: person.state()["state"] in ENDED, "it has ended", seconds=_PATIENCE_SECONDS)
        counts = person.state()["counts"]
        assert (counts["succeeded"], counts["failed"]) == (750_000, 250_000)
        person.post("retry-failed")
        until(lambda: person.state()["counts"]["active"], "what failed is queued")
        person.post("cancel")
        until(lambda: person.state()["state"] in ENDED, "it is canceled", seconds=_PATIENCE_SECONDS)
    person.delete()
    person.look()
    recovered("a backfill of a million partitions: an answer", max(person.answers).seconds)
    assert person.late_answers() == []
    crew.assert_sound()
