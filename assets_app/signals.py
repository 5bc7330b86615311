"""What apps above may hear. Sent inside the transaction of what happened."""

from django.dispatch import Signal

# run_ids: list[int]: these runs have just ended, in whatever way; their rows say how.
runs_ended = Signal()
