"""The tests and settings that the table of the guide on security names exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.docs.documents import PROJECT

GUIDE = PROJECT / "docs" / "guides" / "security.md"
SETTINGS = (PROJECT / "docs" / "reference" / "settings.md").read_text()
FORMS = ("user", "root", "apart", "containers")
ANSWERS = {"yes", "part", "no"}
_SETTING = re.compile(r"`([A-Z][A-Z_]{5,})`")
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


class Row(NamedTuple):
    """A line of the table."""

    protected: str
    attacker: str
    measure: str
    answers: tuple[str, ...]
    test: str


def rows() -> list[Row]:
    """Return the lines of the table, without its head."""
    section = GUIDE.read_text().partition("## The table")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert lines[0].strip("| ").split(" | ") == ["protected", "from", "by", *FORMS, "test"]
    cells = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[2:]]
    return [Row(threat, two, three, tuple(more), test) for threat, two, three, *more, test in cells]


@cache
def functions_in(file: Path) -> set[str]:
    """Return the names of the functions in a file."""
    tree = ast.parse(file.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_table_has_rows() -> None:
    assert len(rows()) > 20


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.protected} from {row.attacker}")
def test_a_row_says_of_each_form_whether_it_is_protected_and_names_its_test(row: Row) -> None:
    assert len(row.answers) == len(FORMS)
    assert set(row.answers) <= ANSWERS
    if set(row.answers) == {"no"}:
        return
    named = _TEST.fullmatch(row.test)
    assert named is not None, "A row that claims protection names the test that shows it."
    assert named[2] in functions_in(PROJECT / "tests" / named[1])


def test_settings_that_the_guide_names_are_in_the_reference() -> None:
    named = set(_SETTING.findall(GUIDE.read_text()))
    assert len(named) > 10
    assert {name for name in named if f"`{name}`" not in SETTINGS} == set()


def test_containers_are_of_the_form_apart() -> None:
    composed = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
    gateways = [
        service
        for service in composed["services"].values()
        if "SLICEWISE_RUNNER_USER" in (service.get("environment") or {})
    ]
    assert gateways
    for service in gateways:
        assert service["cap_drop"] == ["ALL"]
        assert "SYS_ADMIN" not in service["cap_add"]
        assert service["environment"]["SLICEWISE_RUNNER_USER"] not in ("root", "0", 0, "")
