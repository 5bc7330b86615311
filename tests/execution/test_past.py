"""A worker's answers to a run that asks for the past of its asset."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import past_partitions
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.past_partitions import PagePosition, PastPartitions
from assets_app.execution.gateway import supervision
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Asset, Gateway, ProducerVersion, RunState
from slicewise.partitions.rows import partition_rows
from tests.attempts import begin_next
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset
from tests.partition_records import made
from tests.queued_runs import run_of
from tests.supervised_runs import ENDED, Worker

ASK = {"type": "ask", "question": "past_partitions", "after": None}


def begun(of: Asset, selection: str | None, user: User, gateway: Gateway) -> Attempt:
    return begin_next(run_of(of, selection, user), gateway)


def everything(attempt: Attempt) -> list[list[str]]:
    """Return all pages of the past."""
    questions, pages, after = PastPartitions(attempt), [], None
    while True:
        answer = questions.answer({**ASK, "after": after})
        pages.append(answer["keys"])
        after = answer["next"]
        if after is None:
            return pages


def keys(attempt: Attempt) -> list[str]:
    return [key for page in everything(attempt) for key in page]


def test_windows_before_the_run_come_newest_first_if_they_were_made(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-02..2013-01-04,2013-01-09,2013-01-11")
    made(days, "2013-01-05", version=0)
    attempt = begun(days, "2013-01-08", alice, gateway)
    assert keys(attempt) == ["2013-01-04", "2013-01-03", "2013-01-02"]


def test_a_run_of_several_windows_has_the_past_of_its_first(alice: User, gateway: Gateway) -> None:
    days = asset("days", DAILY_2013)
    version = ProducerVersion.objects.get()
    version.definition["strategy"] = "range"
    version.save()
    days.refresh_from_db()
    made(days, "2013-01-01..2013-01-06")
    attempt = begun(days, "2013-01-03..2013-01-04", alice, gateway)
    assert keys(attempt) == ["2013-01-02", "2013-01-01"]


def test_products_come_window_by_window(alice: User, gateway: Gateway) -> None:
    weather = asset("weather", DAY_BY_AIRPORT)
    made(weather, "date=2013-01-01..2013-01-02 airport=*")
    made(weather, "date=2013-01-03 airport=JFK")
    attempt = begun(weather, "date=2013-01-03 airport=EWR", alice, gateway)
    assert keys(attempt) == [
        f"2013-01-0{day}|{place}" for day in (2, 1) for place in ("LGA", "JFK", "EWR")
    ]


def test_without_time_the_last_made_comes_first_and_never_the_runs_own(
    alice: User, gateway: Gateway
) -> None:
    places = asset("places", AIRPORTS)
    made(places, "JFK", minute=1)
    made(places, "LGA", minute=2)
    made(places, "EWR", minute=0)
    assert keys(begun(places, "JFK", alice, gateway)) == ["LGA", "EWR"]


def test_an_unpartitioned_asset_has_no_past_partitions(alice: User, gateway: Gateway) -> None:
    unpartitioned = asset("whole")
    assert keys(begun(unpartitioned, None, alice, gateway)) == []


@pytest.mark.parametrize(
    ("partition", "selection", "own_key"),
    [
        (DAILY_2013, "2013-01", "2013-02-01"),
        (DAY_BY_AIRPORT, "date=2013-01 airport=*", "date=2013-02-01 airport=JFK"),
        (slicewise.PartitionBySequence(range(40)), "*", "7"),
    ],
)
def test_pages_join_without_gap_or_overlap(
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    partition: slicewise.PartitionDefinition,
    selection: str,
    own_key: str,
) -> None:
    monkeypatch.setattr(past_partitions, "PAGE", 7)
    of = asset("paged", partition)
    made(of, selection)
    pages = everything(begun(of, own_key, alice, gateway))
    expected = {row.key for row in partition_rows(partition, partition.select(selection))} - {
        own_key
    }
    assert sorted(key for page in pages for key in page) == sorted(expected)
    assert max(map(len, pages)) == 7


def test_a_page_is_one_statement_that_walks_an_index(alice: User, gateway: Gateway) -> None:
    days, places = asset("days", DAILY_2013), asset("places", AIRPORTS)
    made(days, "2013-01..2013-10")
    made(places, "EWR,LGA")
    for of, selection, index in (
        (days, "2013-12-01", "partition_by_window"),
        (places, "JFK", "partition_by_making"),
    ):
        questions = PastPartitions(begun(of, selection, alice, gateway))
        after = [datetime(2013, 5, 1, tzinfo=UTC).isoformat(), "", 0]
        questions.answer({**ASK, "after": after})
        with CaptureQueriesContext(connection) as statements:
            questions.answer({**ASK, "after": after})
        (statement,) = [query["sql"] for query in statements]
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE assets_app_assetpartition")
            # Some hundred rows are read and sorted at once unless that is made to look dear.
            for plan_step in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
                cursor.execute(f"SET LOCAL enable_{plan_step} = off")
            cursor.execute(f"EXPLAIN {statement}")
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert f"Index Scan Backward using {index}" in plan, plan
        assert "ROW(" in plan.split("Index Cond:")[1].splitlines()[0], plan


@pytest.mark.parametrize(
    "spoiled",
    [
        {"question": "secrets"},
        {"question": ["past_partitions"]},
        {"after": 3},
        {"after": ["2013-01-01T00:00:00", "", 1]},
        {"after": ["soon", "", 1]},
        {"after": ["2013-01-01T00:00:00+00:00", "\0", 1]},
        {"after": ["2013-01-01T00:00:00+00:00", "\ud800", 1]},
        {"after": ["2013-01-01T00:00:00+00:00", "", 2**63]},
        {"after": ["2013-01-01T00:00:00+00:00", "", -1]},
        {"after": ["2013-01-01T00:00:00+00:00", "", True]},
        {"after": ["2013-01-01T00:00:00+00:00", ""]},
    ],
)
def test_invalid_questions_are_refused_without_a_statement(
    alice: User, gateway: Gateway, spoiled: dict[str, Any]
) -> None:
    questions = PastPartitions(begun(asset("days", DAILY_2013), "2013-01-08", alice, gateway))
    with CaptureQueriesContext(connection) as statements:
        answer = questions.answer({**ASK, **spoiled})
    assert set(answer) == {"type", "error"}
    assert len(statements) == 0


class AskingRunner:
    """A runner that asks until the runner has the whole past."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def messages(self, timeout: float) -> Any:
        yield ASK
        while self.heard[-1].get("next"):
            yield {**ASK, "after": self.heard[-1]["next"]}
        yield {"type": "discovered", "set": "customers", "keys": ["a"]}
        yield {"type": "finished"}
        yield {**ENDED, "status": 0}

    def answer(self, message: dict[str, Any]) -> None:
        self.heard.append(message)

    def kill(self) -> None:
        """Do nothing: the runner has ended already."""


def test_a_worker_answers_its_runner_and_takes_what_it_found(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_FOLDER, settings.SPARK_REMOTE = tmp_path, "sc://localhost:1"
    worker, runner = Worker(gateway), AskingRunner()
    monkeypatch.setattr(supervision, "current", lambda: worker)
    monkeypatch.setattr(worker, "launch", lambda request: runner)
    monkeypatch.setattr(past_partitions, "PAGE", 2)
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-03")
    run = run_of(days, "2013-01-08", alice)
    dispatch()
    supervision.execute(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.SUCCEEDED, run.error
    answered_keys = [answer["keys"] for answer in runner.heard]
    assert answered_keys == [["2013-01-03", "2013-01-02"], ["2013-01-01"]]


def test_a_position_may_have_any_offset() -> None:
    position = PagePosition.read(["2013-01-02T00:00+16:00", "", 1])
    assert position.moment == datetime(2013, 1, 1, 8, tzinfo=UTC)
