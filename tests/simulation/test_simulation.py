"""After months the record is that of a simple reference: a month here, a year in `make year`."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.execution.conftest import make_gateway, sent
from tests.factories import person
from tests.simulation.comparing import Plan, differences, simulate
from tests.simulation.servers import Servers, simulated_clock

__all__ = ["sent"]

# Two days on which clocks change lie in each: in New York on 9 March, in Berlin on 30 March.
MONTH = Plan(begin=datetime(2025, 3, 3, tzinfo=UTC), days=30, families=1)
YEAR = Plan(
    begin=datetime(2024, 9, 2, tzinfo=UTC), days=365, families=int(os.environ.get("FAMILIES", "9"))
)


@pytest.fixture
def servers(transactional_db: None) -> Iterator[Servers]:
    folder = Path(tempfile.mkdtemp(prefix="slicewise-bundle-"))
    folder.chmod(0o755)
    with simulated_clock() as clock:
        clock.set(MONTH.begin)
        yield Servers(clock, folder, person("alice", is_superuser=True), make_gateway("scheduled"))
    shutil.rmtree(folder)


# Not in one transaction, in which no row that was replaced could ever be cleared away.
@pytest.mark.django_db(transaction=True)
def test_the_record_is_that_of_the_reference(servers: Servers) -> None:
    plan = YEAR if os.environ.get("SIMULATED") == "year" else MONTH
    product, reference = simulate(plan, servers, tell=print)
    deviations = differences(product, reference)
    print(f"{len(reference):,} versions")  # noqa: T201
    assert not deviations, "\n".join([f"{len(deviations)} differences", *deviations[:40]])
    assert len(reference) > 30 * plan.days
    assert {trigger for _, _, _, trigger, _ in reference} == {"schedule", "upstream", "manual", ""}
    # What joins times and assets is made by both where either suffices, and at ticks alone else.
    made_by = {(name, trigger) for name, _, _, trigger, _ in reference}
    for name in ("told_or_nine_00", "regions_or_week_00", "spend_or_day_00"):
        assert {(name, "schedule"), (name, "upstream")} <= made_by
    for name in ("noon_days_00", "summary_00"):
        assert (name, "schedule") in made_by
        assert (name, "upstream") not in made_by
