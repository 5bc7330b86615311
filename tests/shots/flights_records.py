"""The flights of 2013, as after a week of work with backfills."""

from datetime import timedelta
from typing import NamedTuple

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.runtime_partitions import add_partitions
from assets_app.models import Asset, Gateway, Run, RunState
from backfills_app.models import Backfill
from backfills_app.services import cancel_backfill, pause_backfill, request_from_text
from backfills_app.services.advance.advancing import advance
from tests.created_backfills import create_backfill
from tests.scheduling.scheduled_assets import begin
from tests.shots.played_runs import (
    Moment,
    date,
    fail,
    failing_on,
    make,
    note_session,
    play_backfill,
    request,
    write_log,
)

_CARRIERS = ("9E", "AA", "B6", "DL", "EV", "UA", "US", "WN")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
SECOND = timedelta(seconds=1)
_NO_COLUMN = (
    "AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `dep_delay` cannot"
    " be resolved. Did you mean one of the following? [`delay`, `dest`, `date`, `origin`]."
)
_TRACEBACK = """\
Traceback (most recent call last):
  File "reports.py", line 15, in daily_delays
    .agg({"*": "count", "dep_delay": "avg", "arr_delay": "avg"})
  File "pyspark/sql/connect/group.py", line 198, in agg
    return DataFrame(plan.Aggregate(self._df._plan, measures), self._df._session)
"""
NO_COLUMN = Failure(error=_NO_COLUMN, traceback=_TRACEBACK + _NO_COLUMN)
_AWAY = Failure(error="SparkConnectGrpcException: the executor on host worker-3 ran out of memory")


class FlightsRecords(NamedTuple):
    """The records of the flights that addresses of pages name."""

    failed_run: Run
    running_run: Run
    running_backfill: Backfill
    ended_backfill: Backfill


def record_flights(
    user: User, colleague: User, scheduled: Gateway, bulk: Gateway
) -> FlightsRecords:
    """Make most of the year by requests and backfills of two people."""
    _make_sources(user, scheduled)
    failed_run = _make_reports(user, scheduled)
    ended = _make_ended_backfills(user, colleague, bulk)
    _make_unfinished_backfills(user)
    running = _make_running_backfill(colleague, bulk)
    running_run = running.group.runs.filter(state=RunState.RUNNING).order_by("id")[0]
    return FlightsRecords(failed_run, running_run, running, ended)


def _make_sources(user: User, gateway: Gateway) -> None:
    for asset, selection, ago in (
        ("carriers", "", 6 * DAY),
        ("raw_flights", "2013-01-01..2013-10-31", 6 * DAY),
        ("weather", "date=2013-01-01..2013-10-31", 5 * DAY),
    ):
        make(request(asset, selection, user), gateway, Moment(ago=ago, took=3 * MINUTE))


def _make_reports(user: User, gateway: Gateway) -> Run:
    """Make reports; return a run that failed. The days of a week are stale afterwards."""
    months = request("daily_delays", "2013-01-01..2013-08-31", user, strategy=31)
    make(months, gateway, Moment(ago=4 * DAY, took=4 * MINUTE))
    reports = request("monthly_report", "2013-01..2013-07", user)
    make(reports, gateway, Moment(ago=4 * DAY - HOUR, took=20 * SECOND))
    found = Asset.objects.get(name="carrier_days")
    add_partitions(found, _CARRIERS, user=user)
    carriers = request("carrier_days", ",".join(_CARRIERS[:6]), user)
    make(carriers, gateway, Moment(ago=3 * DAY, took=90 * SECOND))
    again = request("raw_flights", "2013-02-10..2013-02-16", user)
    make(again, gateway, Moment(ago=20 * HOUR, took=MINUTE))
    failed = request("daily_delays", "2013-03-10", user)[0]
    fail(begin(failed, gateway), NO_COLUMN)
    date(failed, Moment(ago=2 * HOUR, took=48 * SECOND))
    return failed


def _make_ended_backfills(user: User, colleague: User, gateway: Gateway) -> Backfill:
    """Make backfills that have ended; return one that failed in part."""
    hours = _backfill(
        user, "observations", "2013-01-01", "2013-01-03", description="First days of the year"
    )
    play_backfill(hours, gateway, Moment(ago=2 * DAY, took=5 * MINUTE))
    partly = _backfill(
        colleague, "daily_delays", "2013-09-01", "2013-10-15",
        description="September, and half of October",
    )  # fmt: skip
    failing = failing_on(NO_COLUMN, "2013-09-03", "2013-09-04", "2013-09-05", "2013-09-21")
    play_backfill(partly, gateway, Moment(ago=5 * HOUR, took=50 * SECOND), failing=failing)
    canceled = _backfill(
        user, "raw_flights", "2013-11-01", "2013-12-31", strategy="10", description="Wrong year"
    )
    play_backfill(canceled, gateway, Moment(ago=3 * HOUR, took=2 * MINUTE), most=1)
    cancel_backfill(canceled, user=user)
    advance()
    return partly


def _make_unfinished_backfills(user: User) -> None:
    paused = _backfill(
        user, "weather", "2013-11-01", "2013-12-31", strategy="30",
        description="Waits until the station at LGA is repaired",
    )  # fmt: skip
    pause_backfill(paused, user=user)
    advance()


def _make_running_backfill(user: User, gateway: Gateway) -> Backfill:
    """Make a backfill of 360 partitions with some failures, and three runs under way."""
    backfill = _backfill(
        user, "delays_by_origin", "2013-01-01", "2013-04-30", strategy="partition",
        description="Delays by airport, for the review of winter",
    )  # fmt: skip
    failing = failing_on(
        _AWAY, "2013-01-17|JFK", "2013-02-03|EWR", "2013-02-03|JFK", "2013-02-03|LGA"
    )
    first = Moment(ago=50 * MINUTE, took=14 * SECOND)
    play_backfill(backfill, gateway, first, failing=failing, most=189)
    dispatch()
    for place, run in enumerate(backfill.group.runs.filter(state="dispatched").order_by("id")):
        attempt = attempts.begin(run.pk, gateway)
        assert attempt is not None
        write_log(attempt, 400)
        note_session(attempt)
        date(run, Moment(ago=timedelta(0), took=(9 - 3 * place) * SECOND))
    return backfill


def _backfill(user: User, asset: str, start: str, end: str, **more: object) -> Backfill:
    return create_backfill(request_from_text(asset, start, end, **more), user=user)
