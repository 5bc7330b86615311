"""``python -m bench.dispatching``: the duration of a look that fills ten slots from a million
queued runs, and the waits of runs during the queueing and the cancellation of a large request.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from statistics import median

from bench.running import BUNDLES
from bench.served import prepared_database

_QUEUE = """
INSERT INTO assets_app_run
    (group_id, producer_version_id, asset_id, trigger, queue, state, selection, partition_count,
     params, created_at, queued_at, attempt_count, code_failures, platform_failures, error,
     error_kind)
SELECT queued.group_id, producer.current_version_id, asset.id, 'manual', 'scheduled', 'queued', '',
       1, '{}', now(), now(), 0, 0, 0, '', ''
FROM unnest(%s::bigint[], %s::bigint[]) AS queued(group_id, asset_id)
JOIN assets_app_asset AS asset ON asset.id = queued.asset_id
JOIN assets_app_producer AS producer ON producer.id = asset.producer_id
CROSS JOIN generate_series(1, %s)
"""
_CANCELED_RUNS = 50_000
_LOOKS = 15


def main() -> None:
    """Start the database, fill the queue, and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.dispatching", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs in the queue")
    parser.add_argument("--canceled", type=int, default=_CANCELED_RUNS, help="runs canceled")
    options = parser.parse_args()
    with prepared_database(SLICEWISE_BUNDLES=f"bench={BUNDLES / 'minutes'}"):
        for line in measure(options.runs, options.canceled):
            print(line, flush=True)


def measure(run_count: int, canceled_count: int) -> Iterator[str]:
    """Measure both, on an empty database."""
    # Models can be imported only now: Django reads settings from the environment.
    from assets_app.models import Asset
    from bench import ticks

    ticks.declare()
    asset_ids = list(Asset.objects.filter(bundle__name="many").values_list("id", flat=True))
    fill(asset_ids, run_count // len(asset_ids))
    of_what = f"of 10 from {run_count:,} queued runs in {len(asset_ids):,} groups"
    yield f"first dispatch {of_what}: {timed_dispatch() * 1000:.0f} ms"
    took = [timed_dispatch() for _ in range(_LOOKS)]
    yield (
        f"dispatch {of_what}: median {median(took) * 1000:.0f} ms, worst {max(took) * 1000:.0f} ms"
    )
    queueing, worst = worst_delay_while_queueing(asset_ids[0], canceled_count)
    yield (
        f"worst look while {canceled_count:,} runs are queued in {queueing:.1f} s: "
        f"{worst * 1000:.0f} ms"
    )
    canceling, worst = worst_delay_while_canceling(asset_ids[0], canceled_count)
    yield (
        f"worst look while {canceled_count:,} queued runs are canceled in {canceling:.1f} s: "
        f"{worst * 1000:.0f} ms"
    )


def fill(asset_ids: list[int], runs: int) -> list[int]:
    """Queue so many runs of each asset, with a group for each asset; return the groups."""
    from django.db import connection

    from assets_app.models import GroupKind, Queue, RunGroup

    groups = RunGroup.objects.bulk_create(
        RunGroup(kind=GroupKind.REQUEST, queue=Queue.SCHEDULED) for _ in asset_ids
    )
    group_ids = [group.pk for group in groups]
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, [group_ids, asset_ids, runs])
        cursor.execute("VACUUM ANALYZE assets_app_run")
        cursor.execute("ANALYZE assets_app_rungroup")
    return group_ids


def timed_dispatch() -> float:
    """Return the seconds of one look that fills ten free slots."""
    from django.utils import timezone

    from assets_app.execution.queue.dispatch import dispatch
    from assets_app.models import Gateway, Queue, Run, RunState

    now = timezone.now()
    state = {"queue": Queue.SCHEDULED, "slots": 5, "started_at": now, "last_seen": now}
    Gateway.objects.update_or_create(
        name="bench", defaults={"host": "bench", "process_id": 1, **state}
    )
    began = time.perf_counter()
    sent = dispatch()
    took = time.perf_counter() - began
    if sent != 10:
        raise ValueError(f"{sent} runs were dispatched")
    Run.objects.filter(state=RunState.DISPATCHED).update(state=RunState.QUEUED)
    return took


def worst_delay_while_canceling(asset_id: int, run_count: int) -> tuple[float, float]:
    """Return the seconds of the cancellation of a group, and of the slowest look meanwhile."""
    from accounts_app.models import User
    from assets_app.execution.queue.control import cancel_group
    from assets_app.models import RunGroup

    (group_id,) = fill([asset_id], run_count)
    # It stands first in the queue.
    RunGroup.objects.filter(pk=group_id).update(priority=1)
    group, user = RunGroup.objects.get(pk=group_id), User.objects.get()
    return worst_delay_during(lambda: cancel_group(group, user=user))


def worst_delay_while_queueing(asset_id: int, run_count: int) -> tuple[float, float]:
    """Return the seconds of a statement that queues runs, and of the slowest look meanwhile."""
    from django.db import connection

    from assets_app.models import GroupKind, Queue, RunGroup

    group = RunGroup.objects.create(kind=GroupKind.REQUEST, queue=Queue.SCHEDULED)

    def queue() -> None:
        with connection.cursor() as cursor:
            cursor.execute(_QUEUE, [[group.pk], [asset_id], run_count])

    return worst_delay_during(queue)


def worst_delay_during(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the work, and of the slowest look until just afterwards."""
    from django.db import connections

    took_work: list[float] = []

    def run() -> None:
        began = time.perf_counter()
        try:
            work()
        finally:
            took_work.append(time.perf_counter() - began)
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    looks = []
    while thread.is_alive():
        looks.append(timed_dispatch())
    thread.join()
    looks += [timed_dispatch() for _ in range(3)]
    return took_work[0], max(looks)


if __name__ == "__main__":
    main()
