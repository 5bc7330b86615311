"""Signals that higher apps receive, sent inside the transaction of the event."""

from django.dispatch import Signal

# backfill: Backfill: the backfill has just ended, with success or without.
backfill_ended = Signal()
