"""Keys with fields away from home: labels, texts, JSON, and servers without their classes."""

import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from slicewise import (
    Interval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionKeyError,
)
from slicewise.keys.key_json import key_to_json
from slicewise.keys.record_keys import RecordKey, content
from tests.sdk.key_classes import DAY, Anything, NamedShop, Position, Route, Shop
from tests.sdk.key_values import distinct_values, plain_values


def stand_in(key: Any) -> RecordKey:
    """Return the key as a process without the key's class has the key."""
    type_name, fields = content(key)
    return RecordKey(
        type_name, [name for name, _ in fields], [field_type for _, field_type in fields], key.label
    )


def test_a_label_is_one_line_and_a_failing_one_says_whose_it_is() -> None:
    class Loud(PartitionKey):
        name: str

        def __str__(self) -> str:
            return self.name.upper() * 300 + "\n" if self.name == "a" else str(1 / 0)

    assert Loud("a").label == "A" * 199 + "…"
    with pytest.raises(PartitionKeyError, match=r"Loud.__str__ failed for Loud\(name='b'\): Zero"):
        key_to_json(Loud("b"))


def test_keys_can_be_pickled_and_copied() -> None:
    class Local(PartitionKey):
        x: int

    route = Route(Position(1, 2, 3), DAY, ("a", "b"))
    unknown = RecordKey("Unknown", ["x"], [1], "one")
    for key in (route, NamedShop("mitte"), Local(7), unknown):
        for again in (pickle.loads(pickle.dumps(key)), copy.copy(key), copy.deepcopy(key)):
            assert again == key
            assert type(again) is type(key)
            assert again.label == key.label


def test_keys_in_fields_have_texts_of_their_own() -> None:
    route = Route(Position(1, 2, 3), DAY)
    assert route.text.startswith("Position%281~2~3%29~%40interval%28")
    berlin = Interval(DAY.start, DAY.end, "Europe/Berlin")
    assert Route(Position(1, 2, 3), berlin) == route
    assert Route(Position(1, 2, 3), berlin).text == route.text
    assert Anything(("1", 1), frozenset({"b", "a"})).text == "%28_1~1%29~%7Ba~b%7D"


@given(first=plain_values, second=plain_values)
@settings(max_examples=200, deadline=None)
def test_texts_are_equal_where_keys_are(first: Any, second: Any) -> None:
    keys = Anything(first, second), Anything(second, first)
    assert (keys[0] == keys[1]) == (keys[0].text == keys[1].text)
    if keys[0] == keys[1]:
        assert hash(keys[0]) == hash(keys[1])
    assert (keys[0] < keys[1]) + (keys[1] < keys[0]) + (keys[0] == keys[1]) == 1


@given(first=plain_values, second=plain_values)
@settings(max_examples=80, deadline=None)
def test_a_stand_in_is_like_the_key(first: Any, second: Any) -> None:
    key, other_key = Anything(first, second), Anything(second, first)
    alike = stand_in(key)
    assert alike == key
    assert key == alike
    assert (hash(alike), alike.text, alike.label) == (hash(key), key.text, key.label)
    assert (alike < other_key) == (key < other_key)
    assert key_to_json(alike) == key_to_json(key)


@given(values=distinct_values)
@settings(max_examples=60, deadline=None)
def test_definitions_with_such_keys_come_back_from_json(values: list[Any]) -> None:
    keys = [Anything(value) for value in values]
    for definition in (
        PartitionBySequence(values),
        PartitionBySequence(keys),
        PartitionByProduct({"a": PartitionBySequence(keys), "b": PartitionBySequence(values)}),
    ):
        spec = json.loads(json.dumps(definition.to_json(), allow_nan=False))
        back = PartitionDefinition.from_json(spec)
        assert back == definition
        assert (back.fingerprint, back.identity) == (definition.fingerprint, definition.identity)
        assert list(back.keys()) == list(definition.keys())
        assert list(map(type, back.keys())) == list(map(type, definition.keys()))
        assert back.to_json() == definition.to_json()


ON_A_SERVER = """
import json, sys
from slicewise import PartitionDefinition
told = json.load(sys.stdin)
before = set(sys.modules)
definition = PartitionDefinition.from_json(told["spec"])
keys = list(definition.keys())
json.dump({
    "spec": definition.to_json(),
    "fingerprint": definition.fingerprint,
    "identity": definition.identity,
    "texts": [key.text for key in keys],
    "labels": [key.label for key in keys],
    "sorted": [key.text for key in sorted(keys)],
    "equal": [[one == two for one in keys] for two in keys],
    "found": [definition.parse(key.text) == key and key in definition for key in keys],
    "selected": len(definition.select("*")),
    "imported": sorted(name for name in set(sys.modules) - before if name.startswith("tests")),
}, sys.stdout)
"""


def test_servers_handle_keys_of_classes_that_they_never_import() -> None:
    definition = PartitionBySequence(
        [
            Position(3, 2, 1),
            Position(1.5, 2, 3),
            Shop("b~c"),
            Shop("a"),
            Route(Position(1, 2, 3), DAY, ("x", "1")),
        ]
    )
    keys = list(definition.keys())
    spec = json.loads(json.dumps(definition.to_json()))
    ran = subprocess.run(
        [sys.executable, "-c", ON_A_SERVER],
        input=json.dumps({"spec": spec}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == {
        "spec": spec,
        "fingerprint": definition.fingerprint,
        "identity": definition.identity,
        "texts": [key.text for key in keys],
        "labels": [key.label for key in keys],
        "sorted": [key.text for key in sorted(keys)],
        "equal": [[first is second for first in keys] for second in keys],
        "found": [True] * 5,
        "selected": 5,
        "imported": [],
    }
