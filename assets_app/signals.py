"""What apps above may hear, and may object to. Sent inside the transaction of what happens."""

from django.dispatch import Signal

# run_ids: list[int]: these runs have just ended, in whatever way; their rows say how.
runs_ended = Signal()
# run_ids: list[int]: somebody wants to retry these runs, which are locked. Whoever counts them
# answers with a sentence for each one that cannot be: dict[int, str].
retry_asked = Signal()
# run_ids: list[int]: these runs had ended, and are queued again with all their partitions.
runs_retried = Signal()
