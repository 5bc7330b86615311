"""After months the record is that of a simple reference: a month here, a year in `make year`."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import transaction

from tests.execution.conftest import make_gateway, sent
from tests.factories import person
from tests.simulation.comparison import Plan, simulate
from tests.simulation.corrupted_rows import KINDS, make_rows_wrong
from tests.simulation.servers import Servers, simulated_clock

__all__ = ["sent"]

# Two days on which clocks change lie in each: in New York on 9 March, in Berlin on 30 March.
# Beat is down for a night and a morning, in which days end and schedules tick several times.
MONTH = Plan(
    begin=datetime(2025, 3, 3, tzinfo=UTC),
    days=30,
    families=range(1),
    downtimes=(
        (datetime(2025, 3, 18, 22, 30, tzinfo=UTC), datetime(2025, 3, 19, 9, 50, tzinfo=UTC)),
    ),
)
_FIRST = int(os.environ.get("FIRST_FAMILY", "0"))
YEAR = Plan(
    begin=datetime(2024, 9, 2, tzinfo=UTC),
    days=int(os.environ.get("DAYS", "365")),
    downtimes=(
        (datetime(2024, 10, 27, 0, 10, tzinfo=UTC), datetime(2024, 10, 27, 3, 20, tzinfo=UTC)),
        (datetime(2025, 2, 1, 4, 30, tzinfo=UTC), datetime(2025, 2, 3, 9, 50, tzinfo=UTC)),
    ),
    families=range(_FIRST, _FIRST + int(os.environ.get("FAMILIES", "9"))),
    with_rare=True,
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
    family = f"_{plan.families[0]:02}"
    deployments, deviations = simulate(plan, servers, tell=print)
    reference = deployments.reference.outcome()
    versions = reference.versions
    print(", ".join(f"{len(entries):,} {kind}" for kind, entries in vars(reference).items()))  # noqa: T201
    assert not deviations, "\n".join([f"{len(deviations)} differences", *deviations[:40]])
    with transaction.atomic():
        make_rows_wrong()
        found = deployments.deviations_when_quiet()
        transaction.set_rollback(True)
    for kind in KINDS:
        assert any(line.startswith(kind) for line in found), kind
    assert len(versions) > 30 * plan.days
    assert {trigger for _, _, _, trigger, _ in versions} == {"schedule", "upstream", "manual", ""}
    # What joins times and assets is made by both where either suffices, and at ticks alone else.
    made_by = {(name, trigger) for name, _, _, trigger, _ in versions}
    for name in (f"told_or_nine{family}", f"regions_or_week{family}", f"spend_or_day{family}"):
        assert {(name, "schedule"), (name, "upstream")} <= made_by
    for name in (f"noon_days{family}", f"summary{family}"):
        assert (name, "schedule") in made_by
        assert (name, "upstream") not in made_by
    results = {(name[:-3], result) for name, *_, result in reference.requests}
    for name in ("flaky_days", "flaky_whole"):
        for result in ("succeeded, 2 attempts", "succeeded, 3 attempts", "failed, 3 attempts"):
            assert (name, result) in results
    reasons = {(state, reason) for _, _, _, state, reason, *_ in reference.partitions}
    for reason in ("upstream_failed", "wait_timeout", ""):
        assert ("skipped", reason) in reasons
    assert {reason for *_, reason, _ in reference.ticks} == {
        *("", "nothing_ended", "exists", "in_flight", "upstream"),
    }
    # After a downtime one tick stands for several.
    assert {name for name, at, last_at, count, *_ in reference.ticks if at == last_at and count > 1}
    needed = Counter((name, text, version) for name, text, version, *_ in reference.inputs)
    assert (
        max(number for (name, *_), number in needed.items() if name == f"three_days{family}") == 3
    )
    assert {
        f"pair{family}",
        f"twin{family}",
        f"after_twin{family}",
        f"season{family}",
        f"campaign{family}",
    } <= {name for name, *_ in versions}
    # Made without an input that was missing or old, and made again once the input has come.
    without = {(name, text) for name, _, text, *_ in reference.requests}
    for name, text in (
        (f"late_or{family}", f"promised{family} missing"),
        (f"late_tolerant{family}", f"seldom{family} missing"),
        (f"late_remade{family}", f"seldom{family} missing"),
        (f"late_fresh_or{family}", f"model{family} old"),
        (f"late_fresh_days{family}", f"supply{family} missing"),
    ):
        assert (name, text) in without
        assert (name, "") in without
