"""The page on states has the states and transitions of the code, in tables and diagrams."""

import re

import pytest
from django.db.models import TextChoices

from assets_app.models import (
    ACTIVE_STATES,
    TRANSITIONS,
    AttemptOutcome,
    FailureKind,
    PartitionState,
    RunPartition,
    RunState,
    SkipReason,
)
from backfills_app.models import BackfillPartition, BackfillState
from tests.docs.documents import PROJECT

TEXT = (PROJECT / "docs/internals/states.md").read_text()
DIAGRAMS = re.findall(r"^```mermaid\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
TABLES = {
    "from": RunState,
    "outcome": AttemptOutcome,
    "kind": FailureKind,
    "settled state": PartitionState,
    "reason of a skip": SkipReason,
    "state": BackfillState,
}


def rows_of(heading: str) -> dict[str, str]:
    """Read the rows of the first table whose first heading is this: second cell by first cell."""
    body = TEXT.partition(f"\n| {heading} | ")[2].partition("\n\n")[0]
    cells = [line.split("|") for line in body.splitlines() if line.startswith("| `")]
    return {row[1].strip().strip("`"): row[2] for row in cells}


def arrows(diagram: str) -> list[tuple[str, str]]:
    """Read the arrows of a diagram; `[*]` is the beginning."""
    return re.findall(r"^ *(\S+) --> (\w+)", diagram, re.MULTILINE)


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_has_every_state_of_the_code(heading: str) -> None:
    assert sorted(rows_of(heading)) == sorted(TABLES[heading].values)


def test_the_transitions_of_runs_are_those_of_the_code() -> None:
    expected = {old.value: {new.value for new in TRANSITIONS[old]} for old in RunState}
    table = {old: set(re.findall("`(.*?)`", new)) for old, new in rows_of("from").items()}
    assert table == expected
    drawn = [(old, new) for old, new in arrows(DIAGRAMS[0]) if old != "[*]"]
    assert sorted(drawn) == sorted((old, new) for old in expected for new in expected[old])


def test_runs_that_take_a_slot_are_named() -> None:
    sentence = re.search(r"Runs in ([^.]*) take a slot", TEXT)
    assert sentence is not None
    assert set(re.findall("`(.*?)`", sentence[1])) == set(ACTIVE_STATES)


@pytest.mark.parametrize(
    ("diagram", "states"),
    [(DIAGRAMS[1], BackfillState), (DIAGRAMS[2], BackfillPartition.State)],
    ids=["backfills", "their partitions"],
)
def test_a_diagram_has_every_state_of_the_code(diagram: str, states: type[TextChoices]) -> None:
    assert {state for arrow in arrows(diagram) for state in arrow} == {"[*]", *states.values}


def test_the_states_of_a_partition_inside_a_run_are_named() -> None:
    sentence = re.search(r"\(`RunPartition`\) is ([^.]*)\.", TEXT)
    assert sentence is not None
    assert set(re.findall("`(.*?)`", sentence[1])) == set(RunPartition.State.values)
