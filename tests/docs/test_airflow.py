"""The page for people who come from Airflow agrees with the arguments of the decorator."""

import re
from dataclasses import fields
from typing import Any

import pytest

from slicewise import DefinitionError, asset
from slicewise.texts.hints import REPLACEMENTS
from tests.docs.documents import PROJECT

PAGE = (PROJECT / "docs/guides/airflow.md").read_text()
TAKEN = {option.name for option in fields(asset)}


def rows() -> list[tuple[str, str]]:
    """Return each argument in the tables, with the page's advice on the argument."""
    cells = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `")]
    argument_names = [
        (name, here.strip()) for names, here in cells for name in re.findall("`(.*?)`", names)
    ]
    return sorted(set(argument_names))


def refusal(argument: str) -> str:
    def sales() -> None: ...

    decorator: Any = asset
    with pytest.raises(DefinitionError) as caught:
        decorator(**{argument: None})(sales)
    assert "asset 'sales': " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("argument", [name for name, here in rows() if here == "taken"])
def test_arguments_listed_as_taken_are_taken(argument: str) -> None:
    assert argument in TAKEN


@pytest.mark.parametrize(("argument", "here"), [row for row in rows() if row[1] != "taken"])
def test_other_arguments_are_refused_with_their_replacement(argument: str, here: str) -> None:
    message = refusal(argument)
    assert f"@asset has no argument {argument!r}: {REPLACEMENTS[argument]}" in message
    if here != "refused":
        (replacement,) = re.fullmatch(r"renamed `(.*)`", here).groups()  # type: ignore[union-attr]
        assert re.search(rf"\b{re.escape(replacement)}[=(]", message)
        assert replacement in TAKEN or replacement == "asset.multi"


def test_every_replacement_is_on_the_page() -> None:
    assert {name for name in REPLACEMENTS if f"`{name}`" not in PAGE} <= {"start", "end", *DRAFTS}


DRAFTS = ("at", "type", "column")


@pytest.mark.parametrize("argument", DRAFTS)
def test_arguments_of_the_drafts_are_refused_with_their_replacement(argument: str) -> None:
    replacement = re.search(rf"`{argument}=`[^`]*`(\w+=)`", PAGE)
    assert replacement is not None
    assert replacement[1] in refusal(argument)


def test_both_pages_are_there_in_full() -> None:
    names = {name for name, _ in rows()}
    assert {"dag_id", "fail_fast", "deadline", "allowed_run_types"} <= names
    assert {"task_id", "retry_policy", "on_skipped_callback", "trigger_rule"} <= names
