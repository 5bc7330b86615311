"""The look of states on pages: one word, one icon and one CSS class each, everywhere.

Colour alone never shows a state: a cell of the grid has a shape (static/slicewise.css), and a badge
has an icon and a word.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateBadge:
    """The label of a state, the icon in the sprite, and the class in the style sheet."""

    name: str
    label: str
    icon: str
    tone: str
    means: str = ""


MISSING = StateBadge("missing", "Missing", "circle-dashed", "neutral", "Not materialized.")
NOT_YET_DUE = StateBadge(
    "not-yet-due", "Not yet due", "hourglass", "neutral", "Time window has not ended."
)
QUEUED = StateBadge("queued", "Queued", "clock", "info", "A run has not begun yet.")
RUNNING = StateBadge("running", "Running", "loader-2", "info", "Being materialized.")
MATERIALIZED = StateBadge("materialized", "Materialized", "check", "good", "The data is in place.")
STALE = StateBadge(
    "stale", "Stale", "rotate", "warn", "Materialized, but upstream has changed since."
)
FAILED = StateBadge("failed", "Failed", "alert-triangle", "bad", "Last run failed.")
CANCELED = StateBadge("canceled", "Canceled", "ban", "neutral", "Last run was canceled.")
SKIPPED = StateBadge(
    "skipped",
    "Skipped",
    "player-skip-forward",
    "neutral",
    "Left out by a run, a backfill, or a tick that queues the latest only.",
)

# Of a backfill, which has no missing partitions.
UNCLAIMED = StateBadge("missing", "Waiting", "clock", "neutral", "Not claimed by a run yet.")

OVERDUE = StateBadge("overdue", "Overdue", "alarm", "bad", "Not materialized in time.")
LATE = StateBadge("late", "Late", "hourglass", "warn", "Missing, and overdue soon.")

PARTITION_LOOKS = (
    MISSING, LATE, OVERDUE, NOT_YET_DUE, QUEUED, RUNNING, MATERIALIZED, STALE, FAILED, CANCELED,
    SKIPPED,
)  # fmt: skip

# The order in which pages list the states of an asset, the most urgent state first; materialized
# partitions need no attention.
URGENT_FIRST = (FAILED, OVERDUE, LATE, RUNNING, QUEUED, STALE, CANCELED, SKIPPED, MISSING)

# States of runs, attempts, partitions of runs, and backfills, beside the states of partitions.
_LOOKS: dict[str, StateBadge] = {look.name: look for look in PARTITION_LOOKS} | {
    "waiting": StateBadge("queued", "Waiting", "clock", "info"),
    "pending": StateBadge("queued", "Pending", "clock", "info"),
    "dispatched": StateBadge("queued", "Dispatched", "clock", "info"),
    "active": StateBadge("running", "Queued or running", "loader-2", "info"),
    "publishing": StateBadge("running", "Publishing", "loader-2", "info"),
    "canceling": StateBadge("running", "Canceling", "loader-2", "warn"),
    "succeeded": StateBadge("materialized", "Succeeded", "check", "good"),
    # Of partitions that failed, were canceled or were skipped, and that a run holds again.
    "retried": StateBadge("retried", "Retried", "rotate", "info"),
    # Of steps of an attempt.
    "stopped": StateBadge("canceled", "Stopped", "ban", "warn"),
    "not_run": StateBadge("skipped", "Not run", "player-skip-forward", "warn"),
    "lost": StateBadge("failed", "Lost", "alert-triangle", "warn"),
    "creating": StateBadge("queued", "Creating", "clock", "info"),
    "scheduled": StateBadge("queued", "Scheduled", "clock", "info"),
    "paused": StateBadge("queued", "Paused", "player-pause", "warn"),
    "passed": StateBadge("passed", "Passed", "check", "good"),
    "warned": StateBadge("warned", "Warning", "alert-triangle", "warn"),
    "not_evaluated": StateBadge("failed", "Not evaluated", "help-circle", "bad"),
    "not_evaluated_warned": StateBadge("warned", "Not evaluated (warning)", "help-circle", "warn"),
    "partially_failed": StateBadge("failed", "Partially failed", "alert-triangle", "bad"),
}
# Of runs that have not begun: the partitions that such a run holds are queued.
NOT_BEGUN_STATES = ("waiting", "queued", "dispatched")


def badge_of(state: str) -> StateBadge:
    """Return the look of a state of any kind; KeyError for a word that is no state."""
    return _LOOKS[state]


def waits_for_slot(run_state: str) -> bool:
    """Return whether a run in this state has not begun, so that its partitions are queued."""
    return run_state in NOT_BEGUN_STATES


def badge_of_backfill_partition(state: str, run_state: str | None) -> StateBadge:
    """Return the look of a partition of a backfill; an active partition looks like the run."""
    if state == "waiting":
        return UNCLAIMED
    return badge_of_partition(state, run_state) if state == "active" else _LOOKS[state]


def badge_of_partition(
    state: str, run_state: str | None = None, *, is_stale: bool = False, lateness: str = ""
) -> StateBadge:
    """Return the look of a partition: a claiming run comes before the settled state. ``lateness``
    is "late" or "overdue" for a partition without data that is not there in time.
    """
    if run_state is None:
        if lateness and state == MISSING.name:
            return _LOOKS[lateness]
        return STALE if is_stale and state == MATERIALIZED.name else _LOOKS[state]
    return QUEUED if waits_for_slot(run_state) else RUNNING
