"""Signals of accounts."""

from django.dispatch import Signal

sign_ins_ended = Signal()
"""Sent when all sessions and tokens of ``user`` ended: ``cause``, and ``tokens``, a number."""
