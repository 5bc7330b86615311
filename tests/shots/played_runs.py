"""Runs that are played without a worker's process, with plausible times, sizes and logs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zlib import crc32

from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Materialization,
    Run,
    RunAttempt,
    RunGroup,
    RunLog,
    RunState,
)
from backfills_app.models import Backfill
from backfills_app.services.advance.advancing import advance
from slicewise_server.events.models import Event
from tests.factories import outlet_of
from tests.scheduling.scheduled_assets import begin

_LOG = """\
INFO  run {run} of {asset} begins: {count} partition{plural}, first {first}
INFO  Spark session opened in 0.4 s
INFO  read upstream partitions in {read:.1f} s
INFO  {rows:,} rows written
"""
Failing = Callable[[Attempt], Failure | None]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a run ended, before now, and how long the run took."""

    ago: timedelta
    took: timedelta


def no_failure(_attempt: Attempt) -> None:
    """Let no run fail."""


def failing_on(failure: Failure, *keys: str) -> Failing:
    """Return a function that gives the failure to runs of one of the partitions."""
    return lambda attempt: failure if set(attempt.keys) & set(keys) else None


def request(asset: str, selection: str, user: User, **more: Any) -> list[Run]:
    """Request partitions of an asset, and return the queued runs."""
    asked = MaterializeRequest(asset=Asset.objects.get(name=asset), selection=selection, **more)
    return list(materialize(asked, user=user).runs.order_by("id"))


def make(runs: Iterable[Run], gateway: Gateway, first: Moment) -> None:
    """Bring runs to their success one after the other; the first run ended at the moment."""
    for place, run in enumerate(runs):
        succeed(begin(run, gateway))
        date(run, Moment(ago=first.ago - place * first.took, took=first.took))


def succeed(attempt: Attempt) -> None:
    """Record data of a plausible size for the partitions of a run that has begun."""
    staged = [_staged(key) for key in attempt.keys or [""]]
    asset = attempt.run.asset
    outlets = [outlet_of(attempt, staged, root=asset.uri, staging=f"{asset.uri}/_staging")]
    write_log(attempt, sum(partition["rows"] for partition in staged))
    note_session(attempt)
    assert attempts.intend_to_publish(attempt.row, outlets)
    assert ending.succeed(attempt.row)


def fail(attempt: Attempt, failure: Failure) -> None:
    """Fail a run that has begun; the run is queued again as long as a retry is left."""
    write_log(attempt, 0, f"ERROR {failure.error}\n{failure.traceback}")
    note_session(attempt)
    assert ending.fail(attempt.row, failure)


def write_log(attempt: Attempt, rows: int, more: str = "") -> None:
    """Write the log of an attempt, with further lines at the end."""
    keys = list(attempt.keys)
    text = _LOG.format(
        run=attempt.run.pk, asset=attempt.run.asset.name, count=len(keys) or 1, rows=rows,
        plural="s" * (len(keys) > 1), first=keys[0] if keys else "the whole asset",
        read=1 + len(keys) / 50,
    )  # fmt: skip
    RunLog.objects.create(attempt=attempt.row, sequence=1, text=text + more)


def note_session(attempt: Attempt) -> None:
    """Note the Spark application of an attempt, and plausible resources of the run's process."""
    attempt.row.cpu_seconds = 0.4 + len(attempt.keys) / 40
    attempt.row.peak_memory = (140 + crc32(str(attempt.run.pk).encode()) % 90) << 20
    RunAttempt.objects.filter(pk=attempt.row.pk).update(application_id="app-20261123061502-0007")


def date(run: Run, moment: Moment) -> None:
    """Move everything that a run has left behind to a moment of the past."""
    ended = timezone.now() - moment.ago
    started = ended - moment.took
    asked = started - timedelta(seconds=4)
    Run.objects.filter(pk=run.pk).update(
        created_at=asked, queued_at=asked, dispatched_at=started, started_at=started
    )
    Run.objects.filter(pk=run.pk, ended_at__isnull=False).update(ended_at=ended)
    RunGroup.objects.filter(pk=run.group_id, kind="request").update(created_at=asked)
    RunAttempt.objects.filter(run=run).update(started_at=started)
    RunAttempt.objects.filter(run=run, ended_at__isnull=False).update(ended_at=ended)
    RunLog.objects.filter(attempt__run=run).update(at=ended)
    Materialization.objects.filter(run=run).update(created_at=ended)
    made = AssetPartition.objects.filter(last_run=run.pk, state="materialized")
    made.update(materialized_at=ended)
    Event.objects.filter(run_id=run.pk).update(at=ended)


def play_backfill(
    backfill: Backfill, gateway: Gateway, first: Moment, *, failing: Failing = no_failure,
    most: int = 10_000,
) -> int:  # fmt: skip
    """Bring at most so many runs of a backfill to their ends; return how many."""
    ended = 0
    while ended < most:
        Gateway.objects.filter(pk=gateway.pk).update(last_seen=timezone.now())
        advance()
        dispatch()
        sent = list(backfill.group.runs.filter(state=RunState.DISPATCHED).order_by("id"))
        if not sent:
            break
        for run in sent[: most - ended]:
            attempt = attempts.begin(run.pk, gateway)
            assert attempt is not None
            attempts.take_inputs(attempt)
            failure = failing(attempt)
            if failure is None:
                succeed(attempt)
            else:
                fail(attempt, failure)
            date(run, Moment(ago=first.ago - ended * first.took, took=first.took))
            ended += 1
    advance()
    asked = timezone.now() - first.ago - first.took - timedelta(seconds=9)
    rows = Backfill.objects.filter(pk=backfill.pk)
    rows.update(submitted_at=asked, run_start_date=asked + timedelta(seconds=5))
    last = timezone.now() - first.ago + ended * first.took
    rows.exclude(run_end_date=None).update(run_end_date=last)
    return ended


def _staged(key: str) -> dict[str, Any]:
    rows = 780 + crc32(key.encode()) % 190
    return {"key": key, "path": f"partition={key}", "rows": rows, "bytes": rows * 71}
