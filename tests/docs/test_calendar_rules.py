"""The calendar rules that code cites by number are on the page of rules."""

import re
from collections.abc import Iterator

import pytest

from tests.docs.documents import PROJECT

CALENDAR = PROJECT / "docs/internals/calendar.md"
FOLDERS = ("slicewise", "partitions_app", "assets_app", "backfills_app", "tests")
KINDS = ("calendar", "need", "due")
# A list of numbers goes on over the line ends of docstrings.
_CITATION = re.compile(
    r"\b(?:(\w+)\s+)?rules?\s+(\d+(?:(?:,\s+(?:and\s+|or\s+|not\s+)?|\s+(?:and|or)\s+)\d+)*)",
    re.IGNORECASE,
)


def cited(text: str) -> list[tuple[str, int]]:
    """Return the kind and number of each rule that a text cites; an unnamed kind is empty."""
    citations = [(kind.lower(), numbers) for kind, numbers in _CITATION.findall(text)]
    return [
        (kind if kind in KINDS else "", int(number))
        for kind, numbers in citations
        for number in re.findall(r"\d+", numbers)
    ]


def citations() -> Iterator[tuple[str, str, int]]:
    """Find the file, kind and number of each citation in Python files but this one."""
    for folder in FOLDERS:
        for file in sorted((PROJECT / folder).rglob("*.py")):
            if file.name != "test_calendar_rules.py":
                for kind, number in cited(file.read_text()):
                    yield str(file.relative_to(PROJECT)), kind, number


def rules() -> list[tuple[str, int]]:
    """Read kind and number of each rule from the page."""
    heads = re.findall(r"^\*\*(\w+) rule (\d+): ", CALENDAR.read_text(), re.MULTILINE)
    return [(kind.lower(), int(number)) for kind, number in heads]


def test_rules_are_numbered_without_gaps() -> None:
    numbers = {kind: [n for k, n in rules() if k == kind] for kind in KINDS}
    assert numbers == {kind: list(range(1, len(numbers[kind]) + 1)) for kind in KINDS}
    assert all(numbers.values())


@pytest.mark.parametrize(("file", "kind", "number"), list(citations()))
def test_a_cited_rule_is_on_the_page(file: str, kind: str, number: int) -> None:
    assert kind in KINDS, f"{file}: say which rule {number}: of {', '.join(KINDS)}"
    assert (kind, number) in rules(), file


def test_citations_are_read_with_all_of_their_numbers() -> None:
    assert cited("calendar rules 2,\n    7 and 8; rule 4") == [
        *[("calendar", 2), ("calendar", 7), ("calendar", 8)],
        ("", 4),
    ]
    assert cited("by Need rule 5, not 4, in 3 rules") == [("need", 5), ("need", 4)]
