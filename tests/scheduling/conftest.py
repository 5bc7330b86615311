"""What tests of schedules share: nothing is sent, and runs are brought to their end by hand."""

from tests.execution.conftest import alice, gateway, sent

__all__ = ["alice", "gateway", "sent"]
