"""The progress of one request's runs, which a command follows."""

from django.db.models import Case, Count, OuterRef, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from assets_app.models import DISCOVERY, TERMINAL_STATES, RunGroup, RunPartition, RunState
from slicewise_server.web.commands.work_progress import WorkProgress

# The number of runs whose errors are read.
_MOST_ERRORS = 1000
_UNSUCCESSFUL = tuple(state for state in TERMINAL_STATES if state != RunState.SUCCEEDED)


def run_states(group: RunGroup) -> dict[str, int]:
    """Count the partitions of a request's runs, by the state of the run."""
    states = group.runs.order_by().values_list("state").annotate(Sum("partition_count"))
    return dict(states)


def run_errors(group: RunGroup) -> list[tuple[int, str]]:
    """Return the errors of a request's unsuccessful runs, each with the number of the run."""
    runs = group.runs.filter(state__in=_UNSUCCESSFUL)
    rows = runs.order_by("id").values_list("id", "error", "state")[:_MOST_ERRORS]
    return [(run, error or state) for run, error, state in rows]


def request_progress(group: RunGroup) -> WorkProgress:
    """Return the progress of a request's runs.

    A run that discovers partitions has no progress before the end of the run. Partitions that an
    unsuccessful run has materialized are done, and not failed.
    """
    runs = group.runs.annotate(published=_published_partitions())
    # One statement: a run may end, or be retried, at any time.
    rows = runs.order_by().values_list("state").annotate(Sum("partition_count"), Sum("published"))
    total = done = failed = 0
    states = set()
    for state, partition_count, published_count in rows:
        states.add(state)
        total += partition_count
        if state in TERMINAL_STATES:
            done += partition_count
        if state in _UNSUCCESSFUL:
            failed += partition_count - published_count
    return WorkProgress(
        total=total, done=done, failed=failed, state="", ended=states <= set(TERMINAL_STATES)
    )


def _published_partitions() -> Case:
    """Return the number of partitions that an unsuccessful run has materialized.

    A run of several assets has a row for each asset of a partition.
    """
    rows = RunPartition.objects.filter(
        run=OuterRef("pk"),
        partition__asset=OuterRef("asset"),
        state=RunPartition.State.SUCCEEDED,
    ).exclude(partition__identity=DISCOVERY)
    counts = rows.order_by().values("run").annotate(number=Count("pk")).values("number")
    of_run = Coalesce(Subquery(counts), 0)
    return Case(When(state__in=_UNSUCCESSFUL, then=of_run), default=Value(0))
