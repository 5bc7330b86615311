"""Spans of time in declarations about lateness: positive numbers of whole seconds."""

from datetime import timedelta

from slicewise.errors import DefinitionError

SECOND = timedelta(seconds=1)
# Python's calendar ends: a moment so long after any window of our time can still be written.
LONGEST_SPAN = timedelta(days=36_525)


def check_span(shown: str, span: object, *, example: str) -> None:
    """Raise DefinitionError for a value that is no span of whole seconds, more than 0 and at most
    a hundred years. ``shown`` names the argument, and ``example`` is a valid one.
    """
    if not isinstance(span, timedelta):
        hint = f"timedelta(seconds={span})" if type(span) is int else example
        raise DefinitionError(f"{shown} takes a timedelta, not {span!r}; write {hint}")
    if span <= timedelta(0) or span % SECOND:
        raise DefinitionError(
            f"{shown} takes a positive number of whole seconds, not {span_text(span)}"
        )
    if span > LONGEST_SPAN:
        raise DefinitionError(f"{shown} is at most 100 years, not {span_text(span)}")


def span_text(span: timedelta) -> str:
    """Return a span as people write it: ``timedelta(seconds=3600)``."""
    return repr(span).removeprefix("datetime.")
