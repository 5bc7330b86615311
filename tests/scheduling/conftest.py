"""Fixtures of tests of schedules: no message is sent, and the tests bring runs to their end."""

from tests.execution.conftest import alice, gateway, sent
from tests.midnight import same_day

__all__ = ["alice", "gateway", "same_day", "sent"]
