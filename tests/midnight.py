"""Tests of today, which would fail if the day ended meanwhile."""

import time
from datetime import UTC, datetime

import pytest

_DAY_SECONDS = 24 * 60 * 60
# Longer than such a test takes; partitions that are late a moment after midnight are late by then.
_BEFORE_SECONDS, _AFTER_SECONDS = 120, 10


@pytest.fixture
def same_day() -> None:
    """Wait for the next day, if the day in UTC is about to end."""
    now = datetime.now(UTC)
    passed = (now - now.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
    if passed > _DAY_SECONDS - _BEFORE_SECONDS:
        time.sleep(_DAY_SECONDS - passed + _AFTER_SECONDS)
    elif passed < _AFTER_SECONDS:
        time.sleep(_AFTER_SECONDS - passed)
