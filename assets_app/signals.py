"""Signals that higher apps receive and may veto, sent inside the transaction of the event."""

from django.dispatch import Signal

# run_ids: list[int]: these runs have just ended, with success or without; the rows hold the state.
runs_ended = Signal()
# attempt_id: int: an attempt has just ended; the row holds outcome, time and error.
attempt_ended = Signal()
# run_ids: list[int]: a user wants to retry these runs, which are locked. An app that counts runs
# answers with a sentence for each run that cannot be retried: dict[int, str].
retry_requested = Signal()
# run_ids: list[int]: a page asks which of these runs can be retried. An app answers as for
# retry_requested, and locks no rows.
retry_considered = Signal()
# run_ids: list[int], user: User: these ended runs are queued again, with all partitions of each
# run, at the request of the user.
runs_retried = Signal()
# name: str, errors_before: list[str], errors: list[str]: a bundle was synced, with these import
# errors before and now.
bundle_synced = Signal()
# late_ids: list[int]: these partitions (LatePartition) are overdue and are announced now, once.
partitions_overdue = Signal()
# truncation: ScheduleTruncation: one write or tick made more partitions due than may be queued.
schedule_truncated = Signal()
# attempt: RunAttempt, is_new: bool: a worker has begun this attempt, or has taken over its
# publication. An app answers with facts for the log lines of the attempt: dict[str, Any].
attempt_opened = Signal()
# attempt: RunAttempt: its runner is about to start. An app answers with variables for the
# environment of the runner: dict[str, str].
runner_starting = Signal()
# attempt: RunAttempt, phase: AttemptPhase, began: int, ended: int: a worker has ended one phase of
# an attempt; times in nanoseconds since 1970, by the clock of the worker's host.
phase_ended = Signal()
# attempt: RunAttempt, end: AttemptEnd: the end of this attempt is committed.
attempt_closed = Signal()
