"""Errors that end the stack."""

from __future__ import annotations


class StackError(Exception):
    """The machine or the data folder prevents the start; the message names the remedy."""
