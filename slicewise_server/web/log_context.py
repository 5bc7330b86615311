"""Facts that belong to all log lines of a piece of work: the run that a thread executes, say."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_facts: ContextVar[Mapping[str, Any]] = ContextVar("log_facts", default={})  # noqa: B039 - never changed


@contextmanager
def log_facts(facts: Mapping[str, Any]) -> Iterator[None]:
    """Add facts to each log line that this thread writes in the block."""
    token = _facts.set({**_facts.get(), **facts})
    try:
        yield
    finally:
        _facts.reset(token)


def current_facts() -> Mapping[str, Any]:
    """Return the facts of the work that this thread does."""
    return _facts.get()
