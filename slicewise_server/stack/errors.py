"""What the stack says when it cannot go on."""

from __future__ import annotations


class StackError(Exception):
    """Something of the machine or data folder stands in the way; the message says what to do."""
