"""Fixtures of the tests of events: the driven backfills of `tests/backfills`, and API clients."""

from tests.api.conftest import api, olga, stranger_api
from tests.backfills.conftest import worker
from tests.catalogue.conftest import bundle
from tests.execution.conftest import alice, gateway, sent

__all__ = ["alice", "api", "bundle", "gateway", "olga", "sent", "stranger_api", "worker"]
