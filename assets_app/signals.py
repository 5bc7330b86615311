"""Signals that higher apps receive and may veto, sent inside the transaction of the event."""

from django.dispatch import Signal

# run_ids: list[int]: these runs have just ended, with success or without; the rows hold the state.
runs_ended = Signal()
# run_ids: list[int]: a user wants to retry these runs, which are locked. An app that counts runs
# answers with a sentence for each run that cannot be retried: dict[int, str].
retry_requested = Signal()
# run_ids: list[int]: these ended runs are queued again, with all partitions of each run.
runs_retried = Signal()
# name: str, errors_before: list[str], errors: list[str]: a bundle was synced, with these import
# errors before and now.
bundle_synced = Signal()
# left_out: LeftOut: a write or a tick made more partitions due than may be queued.
partitions_left_out = Signal()
