"""The progress of one request's runs, which a command follows."""

from django.db.models import Sum

from assets_app.models import TERMINAL_STATES, RunGroup, RunState
from slicewise_server.web.commands.work_progress import WorkProgress

# The number of runs whose errors are read.
_MOST_ERRORS = 1000


def run_states(group: RunGroup) -> dict[str, int]:
    """Count the partitions of a request's runs, by the state of the run."""
    states = group.runs.order_by().values_list("state").annotate(Sum("partition_count"))
    return dict(states)


def run_errors(group: RunGroup) -> list[tuple[int, str]]:
    """Return the errors of a request's unsuccessful runs, each with the number of the run."""
    runs = group.runs.filter(state__in=TERMINAL_STATES).exclude(state=RunState.SUCCEEDED)
    rows = runs.order_by("id").values_list("id", "error", "state")[:_MOST_ERRORS]
    return [(run, error or state) for run, error, state in rows]


def request_progress(group: RunGroup) -> WorkProgress:
    """Return the progress of a request's runs.

    A run that discovers partitions has no progress before the end of the run.
    """
    states = run_states(group)
    done_count = sum(count for state, count in states.items() if state in TERMINAL_STATES)
    return WorkProgress(
        total=sum(states.values()),
        done=done_count,
        failed=done_count - states.get(RunState.SUCCEEDED, 0),
        state="",
        ended=states.keys() <= set(TERMINAL_STATES),
    )
