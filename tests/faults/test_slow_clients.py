"""Row 18: 500 clients are slow for a minute, each in its own way."""

import pytest

from tests.attacks.slow_clients import crowd, times
from tests.faults.conftest import Recovered
from tests.faults.stack_processes import Crew

pytestmark = [pytest.mark.fault(18), pytest.mark.rounds]

CLIENTS, SECONDS = 500, 60


def test_pages_and_health_answer_while_500_clients_are_slow(
    crew: Crew, recovered: Recovered
) -> None:
    port = int(crew.stack.web_url.rpartition(":")[2])
    with crowd(port, CLIENTS):
        measured = times(port, SECONDS)
    page, health = max(measured.page), sorted(measured.health)[int(len(measured.health) * 0.99) - 1]
    recovered("500 slow clients: a page", page)
    recovered("500 slow clients: health", health)
    assert page < 1, str(measured)
    assert health < 0.2, str(measured)
