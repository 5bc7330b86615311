"""Key classes with fields: declarations and refusals."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pytest

from slicewise import (
    DefinitionError,
    Interval,
    PartitionBySequence,
    PartitionKey,
    PartitionKeyError,
    ProductKey,
)
from slicewise.keys.key_types import PartitionKeyType
from slicewise.keys.partition_key import PlainKey
from slicewise.keys.product_key import WHOLE
from slicewise.keys.record_keys import RecordKey
from tests.sdk.key_classes import DAY, Anything, NamedShop, Position, Route, Shop


def test_the_example_of_the_source_document_is_a_key() -> None:
    here = Position(1.0, y=2.5, z=-3.0)
    assert (here.x, here.y, here.z) == (1.0, 2.5, -3.0)
    assert repr(here) == "Position(x=1.0, y=2.5, z=-3.0)"
    assert str(here) == here.label == "(1.0, 2.5, -3.0)"
    assert here.text == "1~2.5~-3"
    assert here.value is here
    assert here == Position(1, 2.5, -3)
    assert hash(here) == hash(Position(1, 2.5, -3))
    assert {here: "found"}[Position(True, 2.5, -3)] == "found"
    assert Position(1, 2, 3) < Position(1, 2, 4) < Position(2, 0, 0)
    places = PartitionBySequence([Position(0, 0, 0), here])
    assert here in places
    assert places.parse("1~2.5~-3") is here
    assert list(places.select("1~*")) == [here]


def test_without_a_str_people_are_shown_the_repr() -> None:
    shop = Shop("mitte")
    assert str(shop) == shop.label == "Shop(name='mitte', opened=datetime.date(2024, 1, 1))"
    assert shop.describe() == "shop mitte"
    assert NamedShop("mitte", owner="bo").text == "mitte~2024-01-01~bo"
    assert NamedShop("mitte").describe() == "shop mitte"
    assert NamedShop("mitte") != Shop("mitte")


def test_keys_are_frozen() -> None:
    here = Position(1, 2, 3)
    changes: list[Callable[[], None]] = [
        lambda: setattr(here, "x", 2.0),
        lambda: setattr(here, "new", 2.0),
        lambda: delattr(here, "x"),
    ]
    for change in changes:
        with pytest.raises(AttributeError, match="a partition key is frozen"):
            change()
    here.__init__(9, 9, 9)  # type: ignore[misc]
    assert here == Position(1, 2, 3)


def test_a_class_is_complete_as_it_is_declared() -> None:
    with pytest.raises(DefinitionError, match="__init__ cannot be set"):
        Position.__init__ = lambda self: None  # type: ignore[method-assign, assignment, misc]
    with pytest.raises(DefinitionError, match="needs no @dataclass"):

        @dataclass
        class Decorated(PartitionKey):
            x: float


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("__init__", "Slicewise creates the constructor"),
        ("__new__", "Slicewise creates the constructor"),
        ("__post_init__", "Slicewise creates the constructor"),
        ("__init_subclass__", "Slicewise creates the constructor"),
        ("__eq__", "keys are equal, hashed and ordered by their fields"),
        ("__hash__", "keys are equal, hashed and ordered by their fields"),
        ("__lt__", "keys are equal, hashed and ordered by their fields"),
        ("__ge__", "keys are equal, hashed and ordered by their fields"),
        ("__setattr__", "keys are frozen"),
        ("__delattr__", "keys are frozen"),
        ("__getattribute__", "keys are frozen"),
        ("__getattr__", "keys are frozen"),
        ("__slots__", "keys are frozen"),
        ("__del__", "keys are frozen"),
        ("__reduce__", "keys are stored by their fields"),
        ("__reduce_ex__", "keys are stored by their fields"),
        ("__getstate__", "keys are stored by their fields"),
        ("__setstate__", "keys are stored by their fields"),
        ("__call__", "a key class has fields, methods, and __str__"),
        ("__class_getitem__", "a key class has fields, methods, and __str__"),
    ],
)
def test_code_in_the_making_of_keys_is_refused(name: str, instead: str) -> None:
    body = {"__module__": __name__, "__annotations__": {"x": float}, name: lambda *_: None}
    with pytest.raises(DefinitionError, match=f"class Bad may not have {name}: .*{instead}"):
        type("Bad", (PartitionKey,), body)
    with pytest.raises(DefinitionError, match=f"class Bad may not have {name}: .*{instead}"):
        type("Bad", (Position,), body)


@pytest.mark.parametrize("name", ["text", "value", "time", "segment", "label", "of", "_values"])
def test_a_field_cannot_hide_an_attribute_of_every_key(name: str) -> None:
    for body in ({"__annotations__": {name: str}}, {name: property(lambda _: "x")}):
        with pytest.raises(DefinitionError, match=f"'{name}' of the key class Bad would hide"):
            type("Bad", (PartitionKey,), body)


class Mixin:
    def __init__(self, x: object) -> None:
        raise AssertionError("never called")


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        ((Mixin, PartitionKey), "has 2 bases: derive"),
        ((Position, Shop), "has 2 bases: derive"),
        ((Interval,), "cannot derive from Interval: derive Bad from PartitionKey"),
        ((PlainKey,), "cannot derive from PlainKey"),
        ((ProductKey,), "cannot derive from ProductKey"),
        ((type(WHOLE),), "cannot derive from WholeKey"),
        ((RecordKey,), "cannot derive from RecordKey"),
    ],
)
def test_other_bases_are_refused(bases: tuple[type, ...], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        PartitionKeyType("Bad", bases, {})


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (list, "is a list, which a key cannot hold: annotate it as tuple"),
        (list[int], "is a list, which a key cannot hold: annotate it as tuple"),
        ("list[int]", "is a list, which a key cannot hold: annotate it as tuple"),
        ("set", "is a set, which a key cannot hold: annotate it as frozenset"),
        (dict, "is a dict, which a key cannot hold: use one of str, bool"),
        ("Mixin", "is a Mixin, which a key cannot hold"),
        (type("Word", (str,), {}), "is a Word, which a key cannot hold: annotate it as str"),
    ],
)
def test_fields_that_no_key_can_hold_are_refused(annotation: object, message: str) -> None:
    body = {"__annotations__": {"x": annotation}, "Mixin": Mixin, "set": set, "list": list}
    with pytest.raises(DefinitionError, match=f"the field x of Bad {message}"):
        type("Bad", (PartitionKey,), body)


def test_defaults_are_checked_when_the_class_is_declared() -> None:
    with pytest.raises(DefinitionError, match="field y of Bad has no default but follows x"):

        class Bad(PartitionKey):
            x: float = 1.0
            y: float  # type: ignore[misc]

    with pytest.raises(DefinitionError, match="the default of field x of Bad: None"):

        class Bad(PartitionKey):  # type: ignore[no-redef]
            x: float = None  # type: ignore[assignment]

    with pytest.raises(DefinitionError, match="field _x of Bad begins with an underscore"):

        class Bad(PartitionKey):  # type: ignore[no-redef]
            _x: float


def _any(value: Any) -> Any:
    """Return the value as Any: type checkers would refuse the call."""
    return value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Position(_any("a"), 2, 3), "field x of Position takes a float, not 'a' (str)"),
        (lambda: Shop(_any(7)), "field name of Shop takes a str, not 7 (int)"),
        (lambda: Shop("a", datetime(2024, 1, 1)), "field opened of Shop takes a date, not"),
        (lambda: Position(1, _any(None), 3), "field y of Position: None (NoneType) cannot be"),
        (lambda: Position(1, 2, float("nan")), "field z of Position: NaN cannot be"),
        (lambda: Anything([1]), "field value_ of Anything: [1] (list) cannot be a partition key"),
        (lambda: Anything({}), "field value_ of Anything: {} (dict) cannot be a partition key"),
        (lambda: Anything(("a", [1])), "field value_ of Anything: [1] (list) cannot be"),
        (lambda: Anything("a\0b"), "field value_ of Anything: the text 'a\\x00b' cannot be"),
        (lambda: Route(_any(Shop("a")), DAY), "field start of Route takes a Position, not Shop("),
    ],
)
def test_a_refused_value_names_its_field(make: Callable[[], object], message: str) -> None:
    with pytest.raises(PartitionKeyError) as refused:
        make()
    assert str(refused.value).startswith(message)


def test_wrong_arguments_are_refused_like_a_functions() -> None:
    with pytest.raises(TypeError, match=r"Position\(x, y, z\): missing a required argument: 'z'"):
        Position(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        Position(1, 2, 3, w=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="too many positional arguments"):
        Position(1, 2, 3, 4)  # type: ignore[call-arg]

    class Empty(PartitionKey):
        pass

    with pytest.raises(TypeError, match="Empty has no fields"):
        Empty()


def test_annotations_as_text_are_checked_too() -> None:
    names: dict[str, Any] = {"__name__": "sample"}
    source = """
        from __future__ import annotations
        import datetime
        from slicewise import PartitionKey
        class Told(PartitionKey):
            day: datetime.date
            size: float = 1
            words: tuple[str, ...] = ()
    """
    exec("\n".join(line[8:] for line in source.splitlines()), names)
    key_class = names["Told"]
    assert key_class(date(2024, 1, 1), 2, ("a",)).text == "2024-01-01~2~%28a%29"
    with pytest.raises(PartitionKeyError, match="field day of Told takes a date, not '2024"):
        key_class("2024-01-01")
    with pytest.raises(PartitionKeyError, match="field words of Told takes a tuple"):
        key_class(date(2024, 1, 1), words="a")


def test_type_checkers_know_the_constructor() -> None:
    """Type checkers refuse the calls that the class refuses: an ignored error that does not occur
    would be reported.
    """
    here: Position = Position(x=1.0, y=2.0, z=3.0)
    x: float = here.x
    assert sorted([Position(2, 0, 0), here]) == [here, Position(2, 0, 0)]
    assert x == 1
    with pytest.raises(PartitionKeyError, match="field x of Position takes a float"):
        Position(x="a", y=2.0, z=3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        Position(x=1.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="frozen"):
        here.x = 2.0  # type: ignore[misc]
