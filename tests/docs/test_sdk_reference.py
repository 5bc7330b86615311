"""The reference of the SDK agrees with the source, and every public object has a docstring."""

import re
from functools import cache

import griffe

import slicewise
from slicewise import testing
from tests.docs.sdk_reference import HANDED, REFERENCE, document_text, exported, members, package

# An AssetDefinitionError is a DefinitionError that knows its place.
RAISED = re.compile(r"^\s+raise (?!NotImplementedError)(?:Asset(?=Def))?(\w+)[(\n]", re.MULTILINE)


@cache
def public() -> dict[str, griffe.Object]:
    """Return all public objects, with methods and properties, by a name for people."""
    public_objects = exported(package())
    class_members = {
        f"{name}.{member_name}": member
        for name, thing in public_objects.items()
        if isinstance(thing, griffe.Class)
        for member_name, member in members(thing, public_objects.values()).items()
    }
    return {**public_objects, **class_members}


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text() == document_text(), "run: make reference"


def test_everything_that_is_exported_is_in_it() -> None:
    text = REFERENCE.read_text()
    for name in [*slicewise.__all__, *HANDED]:
        assert f"\n### `{name}`\n" in text, name
    for name in testing.__all__:
        assert f"\n### `slicewise.testing.{name}`\n" in text, name


def test_everything_public_has_a_docstring() -> None:
    assert {"Interval.start", "PartitionSet.of", "asset.__call__"} <= public().keys()
    assert [name for name, thing in public().items() if thing.docstring is None] == []


def test_docstrings_name_the_raised_errors() -> None:
    """An error is documented in the function's docstring, the class's docstring or the docstring of
    the base.
    """
    silent = {}
    for name, thing in public().items():
        if isinstance(thing, griffe.Function) and thing.docstring is not None:
            above = thing.parent.docstring if thing.parent is not None else None
            docstring = thing.docstring.value + (above.value if above is not None else "")
            unsaid = [error for error in RAISED.findall(thing.source) if error not in docstring]
            if unsaid and "Always" not in docstring:
                silent[name] = unsaid
    assert silent == {}
