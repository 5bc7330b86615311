"""The look of states on pages: one word, one icon and one CSS class each, everywhere.

Colour alone never shows a state: a cell of the grid has a shape (static/slicewise.css), and a badge
has an icon and a word.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """The label of a state, the icon in the sprite, and the class in the style sheet."""

    name: str
    label: str
    icon: str
    tone: str
    means: str = ""


MISSING = Look("missing", "Missing", "circle-dashed", "neutral", "Never materialized.")
NOT_YET_DUE = Look(
    "not-yet-due", "Not yet due", "hourglass", "neutral", "Time window has not ended."
)
QUEUED = Look("queued", "Queued", "clock", "info", "Waiting for a worker.")
RUNNING = Look("running", "Running", "loader-2", "info", "Being materialized.")
MATERIALIZED = Look("materialized", "Materialized", "check", "good", "Up to date.")
STALE = Look("stale", "Stale", "rotate", "warn", "Upstream has changed since.")
FAILED = Look("failed", "Failed", "alert-triangle", "bad", "Last run failed.")
CANCELED = Look("canceled", "Canceled", "ban", "neutral", "Last run was canceled.")
SKIPPED = Look("skipped", "Skipped", "player-skip-forward", "neutral", "Skipped, with a reason.")

PARTITION_LOOKS = (
    MISSING, NOT_YET_DUE, QUEUED, RUNNING, MATERIALIZED, STALE, FAILED, CANCELED, SKIPPED,
)  # fmt: skip

# States of runs, attempts, partitions of runs, and backfills, beside the states of partitions.
_LOOKS: dict[str, Look] = {look.name: look for look in PARTITION_LOOKS} | {
    "waiting": Look("queued", "Waiting", "clock", "info"),
    "pending": Look("queued", "Pending", "clock", "info"),
    "dispatched": Look("queued", "Dispatched", "clock", "info"),
    "active": Look("running", "Queued or running", "loader-2", "info"),
    "publishing": Look("running", "Publishing", "loader-2", "info"),
    "canceling": Look("running", "Canceling", "loader-2", "warn"),
    "succeeded": Look("materialized", "Succeeded", "check", "good"),
    "lost": Look("failed", "Lost", "alert-triangle", "warn"),
    "creating": Look("queued", "Creating", "clock", "info"),
    "scheduled": Look("queued", "Scheduled", "clock", "info"),
    "paused": Look("queued", "Paused", "player-pause", "warn"),
    "passed": Look("passed", "Passed", "check", "good"),
    "warned": Look("warned", "Warning", "alert-triangle", "warn"),
    "not_evaluated": Look("failed", "Not evaluated", "help-circle", "bad"),
    "not_evaluated_warned": Look("warned", "Not evaluated (warning)", "help-circle", "warn"),
    "partially_failed": Look("failed", "Partially failed", "alert-triangle", "bad"),
}
_HELD_AS_QUEUED = frozenset({"waiting", "queued", "dispatched"})


def look_of(state: str) -> Look:
    """Return the look of a state of any kind; KeyError for a word that is no state."""
    return _LOOKS[state]


def look_of_wanted(state: str, run_state: str | None) -> Look:
    """Return the look of a partition of a backfill; an active partition looks like the run."""
    return look_of_partition(state, run_state) if state == "active" else _LOOKS[state]


def look_of_partition(state: str, run_state: str | None = None, *, is_stale: bool = False) -> Look:
    """Return the look of a partition: a claiming run comes before the settled state."""
    if run_state is None:
        return STALE if is_stale and state == MATERIALIZED.name else _LOOKS[state]
    return QUEUED if run_state in _HELD_AS_QUEUED else RUNNING
