"""Rows 8 and 9: the waits of due partitions, on a whole stack with idle slots."""

import os
import time
from collections.abc import Iterator, Sequence
from statistics import median

import psycopg

from bench.figures import Figure, duration
from bench.history import remember
from bench.running import BUNDLES, data_folder
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.stack import Stack

_WARM_UP, _WATCHED = 5, 20
_LONGEST_BACKLOG = 300

# From the end of a window, the due instant, to the start of the window's run.
DUE = """
SELECT extract(epoch FROM run.started_at - partition.window_end)
FROM assets_app_run AS run
JOIN assets_app_runpartition AS run_partition ON run_partition.run_id = run.id
JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
WHERE run.trigger = 'schedule' AND run.started_at IS NOT NULL
ORDER BY partition.window_start
"""
# From the record of the last upstream partition to the start of the downstream run.
_LAYER = """
SELECT extract(epoch FROM run.started_at - max(read_made.created_at))
FROM assets_app_run AS run
JOIN assets_app_runattempt AS attempt ON attempt.run_id = run.id AND attempt.number = 1
JOIN assets_app_attemptinput AS read ON read.attempt_id = attempt.id
JOIN assets_app_materialization AS read_made
    ON read_made.partition_id = read.partition_id AND read_made.version = read.version
WHERE run.trigger = 'upstream' AND run.started_at IS NOT NULL
GROUP BY run.id ORDER BY run.id
"""
# During a large load, tables are locked and due partitions pile up. No such partition is left once
# the run of the newest window starts on time and no run waits.
_IS_CALM = """
SELECT coalesce(max(partition.window_end) > now() - interval '2 seconds', false)
   AND NOT EXISTS (
       SELECT FROM assets_app_run WHERE state = 'queued' AND queued_at < now() - interval '1 second'
   )
FROM assets_app_run AS run
JOIN assets_app_runpartition AS run_partition ON run_partition.run_id = run.id
JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
WHERE run.trigger = 'schedule' AND run.started_at IS NOT NULL
"""


def measure(history: int = 0) -> Iterator[Figure]:
    """Run the schedules of the bundle for some seconds, and read the rows; repeat with so many
    materializations on record, if any.
    """
    with data_folder() as folder:
        whole = Stack(folder, bundles={"beat": BUNDLES / "beat"}, env=scrubbed(os.environ))
        whole.start()
        try:
            before = waits_by_row(whole)
            yield from _figures(before)
            if history:
                remember(whole.environment(), history)
                wait_for_calm(whole)
                after = waits_by_row(whole)
                yield from _figures(after, before, f", {history:,} materializations on record")
        finally:
            whole.stop()


def wait_for_calm(whole: Stack) -> None:
    """Wait until no run is overdue on the stack. Raises TimeoutError after too long a wait."""
    until = time.monotonic() + _LONGEST_BACKLOG
    with psycopg.connect(whole.environment()["DATABASE_URL"], autocommit=True) as connection:
        while time.monotonic() < until:
            row = connection.execute(_IS_CALM).fetchone()
            if row is not None and row[0]:
                return
            time.sleep(1)
    raise TimeoutError(f"what is due still waits after {_LONGEST_BACKLOG} s")


def waits_by_row(whole: Stack, seconds: int = _WATCHED) -> list[list[float]]:
    """Return the waits of the runs of so many seconds, by both rows; the first runs warm up."""
    with psycopg.connect(whole.environment()["DATABASE_URL"], autocommit=True) as connection:
        seen = [len(connection.execute(query).fetchall()) for query in (DUE, _LAYER)]
        time.sleep(_WARM_UP + seconds)
        return [
            [float(row[0]) for row in connection.execute(query).fetchall()][count + _WARM_UP :]
            for query, count in zip((DUE, _LAYER), seen, strict=True)
        ]


def _figures(
    waits: list[list[float]], before: list[list[float]] | None = None, record: str = ""
) -> Iterator[Figure]:
    works = (
        (8, "from the due instant to running, a scheduled run on idle slots", 0.3),
        (9, "the next layer starts after the last upstream partition", 0.2),
    )
    for place, (row, work, reach) in enumerate(works):
        ratio = None if before is None else median(waits[place]) / median(before[place])
        yield _figure(row, work + record, waits[place], reach, ratio)


def _figure(
    row: int, work: str, waits: Sequence[float], reach: float, ratio: float | None
) -> Figure:
    middle, worst = median(waits), max(waits)
    return Figure(
        row=row,
        work=work,
        measured=f"{duration(middle)}, at most {duration(worst)}",
        seconds=middle,
        bare="" if ratio is None else "an empty record",
        ratio=ratio,
        reach=duration(reach),
        reached=middle <= reach,
        times=len(waits),
    )
