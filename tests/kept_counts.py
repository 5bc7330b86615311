"""Counts of pages and answers that a test changes between two requests."""

import pytest

from slicewise_server.web import kept_counts


@pytest.fixture(autouse=True)
def no_kept_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no count, however long a busy machine takes: a test counts again after a change."""
    monkeypatch.setattr(kept_counts, "CHEAP_SECONDS", 3600.0)
