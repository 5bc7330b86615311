"""Rows 1, 2, 3, 5 and 10: accepting, expanding, previewing, recording and canceling, as work of the
database.
"""

from collections.abc import Iterator
from statistics import median
from typing import Any

from django.db import connection
from django.db.models import Count
from django.test import Client
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.outputs import StagedOutlet
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Asset, AssetPartition, Gateway, Queue, Run, RunGroup, RunState
from backfills_app.models import Backfill, BackfillPartition
from backfills_app.services import cancel_backfill
from backfills_app.services.advance.admission import admit
from backfills_app.services.advance.expansion import expand
from bench.figures import Figure, Pair, duration, in_turns, medians, seconds

_COLUMNS = (
    "backfill_asset_id, position, key, window_start, window_end, segment, bucket, state, reason"
)
_TABLE = BackfillPartition._meta.db_table
_SOME_THERE = """
INSERT INTO assets_app_assetpartition
    (asset_id, identity, key, window_start, window_end, segment, bucket, state, version, due_again)
SELECT asset.id, rule.identity, number::text, at, at + interval '1 minute', '',
       at::date, CASE WHEN number %% 10 = 0 THEN 'failed' ELSE 'materialized' END, 1, false
FROM assets_app_asset AS asset
JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
CROSS JOIN generate_series(0, %s - 1) AS number
CROSS JOIN LATERAL (
    SELECT %s::timestamptz + number * interval '1 minute' AS at
) AS minute
WHERE asset.name = ANY(%s)
"""


def measure(times: int, password: str) -> Iterator[Figure]:
    """Measure all rows; the first account has this password."""
    desk = Desk(password)
    yield from (accept(desk, size, times) for size in (1, 1_000_000))
    yield from (accept_downstream(desk, size, times) for size in (5_000, 20_000))
    yield expanded(desk, 100_000, 1, times)
    yield expanded(desk, 1_000_000, 8, 1)
    yield previewed(desk, 32_000, times)
    yield recorded(desk, 20_000, times)
    yield canceled(desk, 1_500, times)


class Desk:
    """A client of the API, in this process."""

    def __init__(self, password: str) -> None:
        self.user = User.objects.get()
        definition = Asset.objects.get(name="minutes").definition
        assert definition is not None
        self.keys = definition.keys()
        body = {"username": self.user.username, "password": password}
        self._client = Client(headers={"host": "localhost"})
        token = self._post("/api/v1/tokens/", body)["token"]
        self._client = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})

    def ask(self, size: int, since: int = 0, **options: Any) -> Backfill:
        """Create a backfill of so many partitions, from position ``since`` on."""
        body = {
            "asset": "minutes",
            "start": self.keys[since].text,
            "end": self.keys[since + size - 1].text,
            **options,
        }
        return Backfill.objects.get(pk=self._post("/api/v1/backfills/", body)["id"])

    def preview(self, size: int) -> None:
        """Request the preview of a backfill of so many partitions."""
        body = {
            "asset": "minutes",
            "start": self.keys[0].text,
            "end": self.keys[size - 1].text,
            "existing": "missing_and_failed",
        }
        plan = self._post("/api/v1/backfills/preview/", body)
        if (plan["total"], plan["to_materialize"]) != (size, size // 10):
            raise ValueError(f"the preview says {plan}")

    def _post(self, address: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(address, body, content_type="application/json")
        if answer.status_code >= 400:
            raise ValueError(f"{address}: {answer.status_code} {answer.content.decode()}")
        return answer.json()


def accept(desk: Desk, size: int, times: int, *, of: str = "", **options: Any) -> Figure:
    """Measure row 1: a request through the API, beside one INSERT with commit."""
    desk.ask(size, **options)
    pairs = in_turns(lambda: seconds(lambda: desk.ask(size, **options)), _one_insert, times)
    Backfill.objects.all().delete()
    middle, _ = medians(pairs)
    return Figure(
        row=1,
        work=f"accept a backfill request, {size:,} partitions{of}",
        measured=duration(middle.ours),
        seconds=middle.ours,
        bare=f"one INSERT {duration(middle.bare)}",
        reach="100 ms",
        reached=middle.ours <= 0.1,
        times=times,
    )


def accept_downstream(desk: Desk, size: int, times: int) -> Figure:
    """Measure row 1 for partitions on record, every tenth failed, that need as many upstream
    partitions.
    """
    _put_on_record(desk, size, "minutes", "averages")
    options = {"asset": "averages", "existing": "all"}
    figure = accept(desk, size, times, of=" and as many upstream, on record", **options)
    AssetPartition.objects.all().delete()
    return figure


def expanded(desk: Desk, size: int, reach: float, times: int) -> Figure:
    """Measure row 2: the expansion into rows of partitions, beside a copy of such rows."""
    pairs = [_expansion(desk, size) for _ in range(times)]
    middle, ratio = medians(pairs)
    return Figure(
        row=2,
        work=f"expand a backfill into {size:,} partitions",
        measured=duration(middle.ours),
        seconds=middle.ours,
        bare=f"INSERT … SELECT {duration(middle.bare)}",
        ratio=ratio,
        reach=f"{reach:g} s",
        reached=middle.ours <= reach,
        times=times,
    )


def previewed(desk: Desk, size: int, times: int) -> Figure:
    """Measure row 3: a preview through the API, with every tenth partition failed."""
    _put_on_record(desk, size, "minutes")
    took = median(seconds(lambda: desk.preview(size)) for _ in range(times))
    bare = median(seconds(_one_query) for _ in range(times))
    AssetPartition.objects.all().delete()
    return Figure(
        row=3,
        work=f"preview of {size:,} partitions, 9 in 10 there",
        measured=duration(took),
        seconds=took,
        bare=f"one query {duration(bare)}",
        ratio=took / bare,
        reach="100 ms",
        reached=took <= 0.1,
        times=times,
    )


def recorded(desk: Desk, size: int, times: int) -> Figure:
    """Measure row 5: partitions of one range run, from the intent to publish to the last count."""
    took = median(_recording(desk, size, number * size) for number in range(times))
    return Figure(
        row=5,
        work=f"a range run of {size:,} partitions recorded (database only)",
        measured=f"{size / took:,.0f}/s",
        seconds=took,
        reach="20,000/s",
        reached=size / took >= 20_000,
        times=times,
    )


def canceled(desk: Desk, size: int, times: int) -> Figure:
    """Measure row 10: the cancellation of a backfill with so many queued runs."""
    took = median(_cancelation(desk, size) for _ in range(times))
    return Figure(
        row=10,
        work=f"cancel {size:,} queued runs",
        measured=duration(took),
        seconds=took,
        reach="0.5 s",
        reached=took <= 0.5,
        times=times,
    )


def _put_on_record(desk: Desk, size: int, *assets: str) -> None:
    """Record the first partitions of each asset, every tenth as failed."""
    with connection.cursor() as cursor:
        cursor.execute(_SOME_THERE, [size, desk.keys[0].start, list(assets)])


def _one_insert() -> float:
    return seconds(lambda: RunGroup.objects.create(label="bench"))


def _one_query() -> None:
    list(AssetPartition.objects.values_list("state").annotate(number=Count("pk")).order_by())


def _expansion(desk: Desk, size: int) -> Pair:
    backfill = desk.ask(size)
    ours = seconds(lambda: _expand(backfill))
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE bench_copy (LIKE {_TABLE} INCLUDING ALL)")
        copy = f"INSERT INTO bench_copy ({_COLUMNS}) SELECT {_COLUMNS} FROM {_TABLE}"
        bare = seconds(lambda: cursor.execute(copy))
        cursor.execute("SELECT count(*) FROM bench_copy")
        if cursor.fetchone() != (size,):
            raise ValueError("the expansion did not write what was asked for")
        cursor.execute("DROP TABLE bench_copy")
    _forget(backfill)
    return Pair(ours, bare)


def _expand(backfill: Backfill) -> None:
    while expand(backfill.pk):
        pass


def _recording(desk: Desk, size: int, since: int) -> float:
    attempt = _begun(desk.ask(size, since, strategy="range", existing="all"))
    staged = [{"key": key, "path": f"minute={key}", "rows": 1, "bytes": 1} for key in attempt.keys]
    return seconds(lambda: _record(attempt, staged))


def _begun(backfill: Backfill) -> Attempt:
    _expand(backfill)
    admit(backfill.pk)
    # Only now: a gateway that is not heard of for some seconds gets nothing.
    gateway = _gateway()
    dispatch()
    attempt = attempts.begin(Run.objects.get(group=backfill.group).pk, gateway)
    if attempt is None:
        raise ValueError("the run could not be begun")
    return attempt


def _gateway() -> Gateway:
    now = timezone.now()
    gateway, _ = Gateway.objects.update_or_create(
        name="bench",
        defaults={
            "host": "bench",
            "process_id": 1,
            "queue": Queue.BACKFILL,
            "slots": 1,
            "started_at": now,
            "last_seen": now,
        },
    )
    return gateway


def _record(attempt: Attempt, staged: list[dict[str, Any]]) -> None:
    outlet = StagedOutlet(
        asset_id=attempt.run.asset_id,
        name_on_disk=attempt.row.name_on_disk,
        root="/nowhere",
        staging="/nowhere",
        partitions=staged,
    )
    if not attempts.intend_to_publish(attempt.row, [outlet]):
        raise ValueError("the run was taken")
    if not ending.succeed(attempt.row):
        raise ValueError("the run was not recorded")


def _cancelation(desk: Desk, size: int) -> float:
    backfill = desk.ask(size, max_active_runs=size // 3, existing="all")
    _expand(backfill)
    admit(backfill.pk)
    if Run.objects.filter(group=backfill.group, state=RunState.QUEUED).count() != size:
        raise ValueError("not all runs are in the queue")
    return seconds(lambda: cancel_backfill(backfill, user=desk.user))


def _forget(backfill: Backfill) -> None:
    """Delete a backfill without Django's walk over every row."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {_TABLE}")
    backfill.delete()
