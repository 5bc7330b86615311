"""Row 6: PostgreSQL restarted under load."""

import http.cookiejar
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import ADMIN
from tests.e2e.conftest import ended
from tests.faults.conftest import Recovered
from tests.faults.marks import (
    Mark,
    assert_never_twice_at_once,
    await_attempts,
    let_end,
    marks_of,
)
from tests.faults.runs import request_run
from tests.faults.stack_processes import SHORT_LEASE, Crew, until
from tests.processes import is_alive

pytestmark = pytest.mark.fault(6)

_AWAY_SECONDS = 3.0
# Of a run that stands for one of hours: longer than what drops idle connections waits for.
LONG_RUN_SECONDS = float(os.environ.get("LONG_RUN_SECONDS", "600"))
_PATHS = (
    "/", "/runs/", "/backfills/", "/assets/days/", "/gateways/",
    "/api/v1/runs/", "/api/v1/backfills/", "/api/v1/assets/days/",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The answer to one request: the time of the request, the seconds of the answer, and the
    status.
    """

    path: str
    asked: float
    took: float
    status: int


class Readers:
    """People and programs that look at pages all the time."""

    def __init__(self, crew: Crew) -> None:
        self.answers: list[Answer] = []
        self._url = crew.stack.web_url
        jar = http.cookiejar.CookieJar()
        self._people = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self._sign_in(jar, crew.stack.admin_password)
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=[path]) for path in _PATHS]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def await_answers(self, *, since: float) -> None:
        """Wait until each page that was requested since then was answered twice."""

        def look() -> bool:
            answers_by_path = Counter(
                answer.path for answer in self.answers if answer.asked > since
            )
            return len(answers_by_path) == len(_PATHS) and min(answers_by_path.values()) > 1

        until(look, "all pages are answered")

    def _sign_in(self, jar: http.cookiejar.CookieJar, password: str) -> None:
        self._people.open(f"{self._url}/sign-in/").close()
        (token,) = [cookie.value for cookie in jar if cookie.name == "csrftoken"]
        fields = {"username": ADMIN, "password": password, "csrfmiddlewaretoken": token or ""}
        body = urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(
            f"{self._url}/sign-in/", body, {"Referer": f"{self._url}/sign-in/"}
        )
        self._people.open(request).close()

    def _read(self, path: str) -> None:
        while not self._enough.wait(0.05):
            asked_at = time.monotonic()
            status = self._status(path)
            self.answers.append(Answer(path, asked_at, time.monotonic() - asked_at, status))

    def _status(self, path: str) -> int:
        try:
            with self._people.open(f"{self._url}{path}", timeout=120) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code


def test_nobody_is_refused_for_longer_than_it_is_away_and_no_state_is_lost(
    crew: Crew, api: Client, recovered: Recovered, fault_round: int
) -> None:
    month = f"2002-{fault_round:02}"
    backfill = api.post("/backfills/", asset="patient", start=f"{month}-01", end=f"{month}-12")
    address = f"/backfills/{backfill['id']}/"
    until(lambda: api.get(address)["counts"]["succeeded"] >= 1, "it is at work")
    with Readers(crew) as readers:
        readers.await_answers(since=0)
        crew.halt("postgresql")
        away = time.monotonic()
        time.sleep(_AWAY_SECONDS)
        crew.launch("postgresql")
        until(lambda: crew.rows("SELECT 1"), "it answers", every=0.02)
        back = time.monotonic()
        readers.await_answers(since=back)
    later = [answer for answer in readers.answers if answer.asked > back]
    assert [answer for answer in later if answer.status != 200] == []
    meanwhile = [answer for answer in readers.answers if away - 1 < answer.asked <= back]
    # Those that were being answered when it ended, and those that waited for it in vain.
    assert set(Counter(answer.status for answer in meanwhile)) <= {200, 503}
    first = min(answer.asked + answer.took for answer in later)
    recovered("PostgreSQL restarted: a page", first - back)

    ended_backfill = ended(api, address)
    recovered("PostgreSQL restarted: its runs", time.monotonic() - back)
    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == ("succeeded", 12)
    versions = crew.materializations("patient")
    days = {key: versions[key] for key in versions if key.startswith(month)}
    assert days == {f"{month}-{day:02}": (1, 1) for day in range(1, 13)}


def test_a_restart_while_nobody_looked_is_no_trouble_to_whoever_looks_next(
    crew: Crew, api: Client
) -> None:
    with Readers(crew) as readers:  # so that many connections idle
        readers.await_answers(since=0)
    crew.halt("postgresql")
    crew.launch("postgresql")
    until(lambda: crew.rows("SELECT 1"), "it answers", every=0.02)
    with Readers(crew) as readers:
        readers.await_answers(since=0)
    assert {answer.status for answer in readers.answers} == {200}


@pytest.mark.rounds
def test_a_long_run_outlives_a_restart_whether_or_not_it_prints(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    day, every = f"2024-01-{fault_round:02}", 0.2
    params = {"seconds": LONG_RUN_SECONDS, "said": f"round {fault_round}"}
    quiet = request_run(api, "lasting", day, **params)
    prints = request_run(api, "lasting", f"2024-02-{fault_round:02}", every=every, **params)
    runs = (quiet, prints)
    for run in runs:
        await_attempts(lake, run, 1)
    started_at = time.monotonic()
    for fraction in (0.3, 0.6):
        time.sleep(max(0.0, started_at + fraction * LONG_RUN_SECONDS - time.monotonic()))
        crew.halt("postgresql")
        time.sleep(_AWAY_SECONDS)
        crew.launch("postgresql")
        until(lambda: crew.rows("SELECT 1"), "it answers", every=0.02)
    for run in runs:
        assert crew.await_run(run, seconds=LONG_RUN_SECONDS + 240) == "succeeded"
        assert crew.attempts(run) == [(1, "succeeded", "")]
        (mark,) = marks_of(lake, run)
        assert mark.is_done
        recovered(
            "PostgreSQL restarted: a long run, once its code has ended", _lag(crew, run, mark)
        )
    lines = _log(crew, prints)
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    assert len(lines) > 0.5 * LONG_RUN_SECONDS / every


def test_a_database_that_is_away_for_longer_than_a_lease_costs_no_loss(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    crew.halt("worker-scheduled")
    crew.hire_gateway("brief", env=SHORT_LEASE)
    lease = float(SHORT_LEASE["LEASE_SECONDS"])
    may_end = f"lease that ended {fault_round}"
    (run,) = api.post(
        "/assets/patient/materialize/",
        selection=f"2003-01-{fault_round:02}",
        params={"seconds": 0.2, "until": may_end},
    )["runs"]
    (first,) = await_attempts(lake, run, 1)
    crew.halt("postgresql")
    time.sleep(1.2 * lease)
    assert not is_alive(first.pid), "user code ends before the lease can"
    crew.launch("postgresql")
    until(lambda: crew.rows("SELECT 1"), "it answers", every=0.02)
    back_at = time.monotonic()
    await_attempts(lake, run, 2)
    let_end(lake, may_end)
    recovered("PostgreSQL away for longer than a lease: its runs", time.monotonic() - back_at)
    assert crew.await_run(run) == "succeeded"
    unrenewed = (
        "The process of the run was ended, since its worker could not renew the lease of the run"
        f" for {2 / 3 * lease:g} s: the database was away, or the worker was stopped."
    )
    assert crew.attempts(run) == [(1, "failed", unrenewed), (2, "succeeded", "")]
    assert crew.rows(_FAILURES, run) == [(1, 0)]
    assert_never_twice_at_once(marks_of(lake, run))
    crew.assert_sound()


_FAILURES = "SELECT platform_failures, lost_attempts FROM assets_app_run WHERE id = %s"


def _lag(crew: Crew, run: int, mark: Mark) -> float:
    """Return the seconds between the end of a run's code and the record of the end."""
    ended = crew.value("SELECT extract(epoch FROM ended_at) FROM assets_app_run WHERE id = %s", run)
    return float(ended) - mark.last


def _log(crew: Crew, run: int) -> list[str]:
    """Return the output of the function in the run's only attempt."""
    rows = crew.rows(
        "SELECT log.text FROM assets_app_runlog AS log"
        " JOIN assets_app_runattempt AS attempt ON attempt.id = log.attempt_id"
        " WHERE attempt.run_id = %s ORDER BY log.sequence",
        run,
    )
    text = "".join(chunk for (chunk,) in rows)
    return [line for line in text.splitlines() if line.startswith("line ")]
