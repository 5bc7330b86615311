"""Signals of accounts."""

from django.dispatch import Signal

sign_ins_ended = Signal()
"""All sessions and tokens of ``user`` have ended: ``cause``, and ``tokens``, their number."""
