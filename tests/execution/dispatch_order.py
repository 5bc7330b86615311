"""The rules by which queued runs get free slots, once more and plainly: all runs are looked at.

1. A run is ready if it is queued and the time until which a retry waits has come. Left out are
   runs of paused groups, of groups and producers whose active runs have reached the limit, and,
   while no gateway reaches Spark, those that need it.
2. Within a group, the runs of one producer go in the order of their ids, no more of them than the
   group has room for.
3. Within a producer, groups of higher priority go first. Groups of one priority take turns: the
   first run of each, then the second of each; the active runs of a group count as turns that it
   has had. No more runs go than the producer has room for.
4. Producers of higher priority go first. Runs of one such priority go by the priority of their
   groups, then producers take turns in the same way.
5. Of several producers a group gets no more than it has room for.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from assets_app.models import ACTIVE_STATES, Run, RunState


def expected_order(
    queue: str, now: datetime, *, has_spark: bool, locked_groups: Collection[int] = ()
) -> list[int]:
    """Return the ids of the queue's runs that could start, the next run first."""
    runs = list(Run.objects.select_related("group", "producer_version__producer__current_version"))
    active = [run for run in runs if run.state in ACTIVE_STATES]
    of_group = Counter(run.group_id for run in active)
    of_producer = Counter(run.producer_version.producer_id for run in active)
    ready = [
        run
        for run in sorted(runs, key=lambda run: run.pk)
        if run.state == RunState.QUEUED
        and run.queue == queue
        and (run.not_before is None or run.not_before <= now)
        and not run.group.paused
        and run.group_id not in locked_groups
        and (has_spark or run.producer_version.definition.get("engine") == "submit")
    ]
    turns: list[tuple[int, int, int, int, int]] = []
    for producer_id in {run.producer_version.producer_id for run in ready}:
        producer_runs = [run for run in ready if run.producer_version.producer_id == producer_id]
        in_turns = _in_turns(producer_runs, of_group)
        limit = _in_force(producer_runs[0]).get("max_active_runs")
        if limit is not None:
            in_turns = in_turns[: max(limit - of_producer[producer_id], 0)]
        priority = _in_force(producer_runs[0]).get("priority") or 0
        for turn, run in enumerate(in_turns, 1 + of_producer[producer_id]):
            turns.append((-priority, -run.group.priority, turn, run.pk, run.group_id))
    limits = {run.group_id: run.group.max_active_runs for run in ready}
    order = []
    for *_, run_id, group_id in sorted(turns):
        limit = limits[group_id]
        if limit is None or of_group[group_id] < limit:
            of_group[group_id] += 1
            order.append(run_id)
    return order


def _in_turns(runs: Sequence[Run], of_group: Counter[int]) -> list[Run]:
    """Return the runs of one producer in the order in which the producer's groups take turns."""
    places: Counter[int] = Counter()
    keyed = []
    for run in runs:
        places[run.group_id] += 1
        turn, limit = places[run.group_id] + of_group[run.group_id], run.group.max_active_runs
        if limit is None or turn <= limit:
            keyed.append((-run.group.priority, turn, run.pk, run))
    return [run for *_, run in sorted(keyed, key=lambda row: row[:3])]


def _in_force(run: Run) -> dict[str, int | None]:
    version = run.producer_version.producer.current_version
    return {} if version is None else version.definition
