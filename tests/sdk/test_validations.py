"""Validations are declared with valid arguments, and describe their expectation."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from slicewise import AssetValidation, DefinitionError, ValidationResult, validation
from slicewise.validations.types import type_text

SALES = SimpleNamespace(asset="raw_sales", name="sales")


@validation
def sums_up(frame: Any) -> bool:
    """Sales are the sum of their parts."""
    return bool(frame)


ALL = [
    AssetValidation.has_columns("sales", SALES.name + "2"),
    AssetValidation.has_types({"sales": "Decimal(10, 2)"}),
    AssetValidation.not_null("sales", "day"),
    AssetValidation.unique("day", "shop"),
    AssetValidation.accepted_values("shop", ["mitte", "wedding"]),
    AssetValidation.matches("phone", r"\+?[0-9 ]+"),
    AssetValidation.row_count(min=1, max=1000),
    AssetValidation.fresh_within(timedelta(days=1), column="at"),
    AssetValidation.fresh_within(timedelta(hours=2)),
    sums_up,
]


@pytest.mark.parametrize("validation", ALL, ids=lambda validation: validation.name)
def test_a_validation_is_frozen_comparable_and_said_in_json(validation: AssetValidation) -> None:
    spec = validation.to_json()
    assert json.loads(json.dumps(spec)) == spec
    assert spec["name"]
    assert spec["severity"] == "error"
    assert spec["description"].endswith(".")
    assert validation == AssetValidation(validation.rule)
    assert validation != AssetValidation(validation.rule, severity="warn")
    assert len({validation, AssetValidation(validation.rule)}) == 1
    assert [equal_validation for equal_validation in ALL if equal_validation == validation] == [
        validation
    ]
    with pytest.raises(AttributeError):
        validation.severity = "warn"  # type: ignore[misc]


def test_json_holds_the_arguments_of_each_kind() -> None:
    shared = {"name", "severity", "description"}
    assert [
        {k: v for k, v in validation.to_json().items() if k not in shared} for validation in ALL
    ] == [
        {"kind": "has_columns", "columns": ["sales", "sales2"]},
        {"kind": "has_types", "types": {"sales": "decimal(10,2)"}},
        {"kind": "not_null", "columns": ["sales", "day"]},
        {"kind": "unique", "columns": ["day", "shop"]},
        {"kind": "accepted_values", "column": "shop", "values": ["mitte", "wedding"]},
        {"kind": "matches", "column": "phone", "regex": r"\+?[0-9 ]+"},
        {"kind": "row_count", "min": 1, "max": 1000},
        {"kind": "fresh_within", "seconds": 86400.0, "column": "at"},
        {"kind": "fresh_within", "seconds": 7200.0, "column": None},
        {"kind": "function", "function": "sums_up"},
    ]


def test_a_validation_is_named_after_its_rule_unless_it_has_a_name() -> None:
    assert [validation.name for validation in ALL] == [
        *("has_columns(sales, sales2)", "has_types(sales)", "not_null(sales, day)"),
        *("unique(day, shop)", "accepted_values(shop)", "matches(phone)", "row_count"),
        *("fresh_within(at)", "fresh_within", "sums_up"),
    ]
    assert AssetValidation.not_null("sales", name="complete").name == "complete"


def test_descriptions_are_sentences() -> None:
    assert AssetValidation.row_count(min=1).description == "The data has at least 1 row."
    assert AssetValidation.row_count(max=0).description == "The data has at most 0 rows."
    assert AssetValidation.row_count(min=2, max=2).description == "The data has 2 rows."
    assert ALL[6].description == "The data has 1 to 1,000 rows."
    assert ALL[7].description == "The newest 'at' is at most 1 day, 0:00:00 ago."
    assert sums_up.description == "Sales are the sum of their parts."


def test_columns_of_an_asset_stand_for_their_names_and_tell_whose_they_are() -> None:
    validation = AssetValidation.not_null(SALES, "day")
    assert validation == AssetValidation.not_null("sales", "day")
    assert validation.assets == {"raw_sales"}
    assert AssetValidation.has_columns("sales").assets == frozenset()
    assert AssetValidation.matches(SALES, "a").assets == {"raw_sales"}
    assert AssetValidation.fresh_within(timedelta(1), column=SALES).assets == {"raw_sales"}
    column = SimpleNamespace(asset=SimpleNamespace(name="costs"), name="cost")
    assert AssetValidation.unique(column).assets == {"costs"}
    with pytest.raises(DefinitionError, match="one asset, not about 'costs', 'raw_sales'"):
        AssetValidation.unique(SALES, column)


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda: AssetValidation.has_columns(), "at least one column"),
        (lambda: AssetValidation.not_null(["a", "b"]), r"one by one: not_null\('a', 'b'\)"),
        (lambda: AssetValidation.unique("a", "a"), "'a' twice"),
        (lambda: AssetValidation.not_null(3), "names of columns, not 3"),
        (lambda: AssetValidation.not_null(" "), "names of columns"),
        (lambda: AssetValidation.has_types({}), "at least one column"),
        (lambda: AssetValidation.has_types(["a"]), "as a dict"),  # type: ignore[arg-type]
        (lambda: AssetValidation.has_types({"a": "strng"}), "did you mean 'string'"),
        (lambda: AssetValidation.has_types({"a": 3}), "a type is a text"),
        (lambda: AssetValidation.accepted_values("a", "xyz"), "list of values"),
        (lambda: AssetValidation.accepted_values("a", []), "at least one value"),
        (lambda: AssetValidation.accepted_values("a", ["x", None]), "not_null"),
        (lambda: AssetValidation.accepted_values("a", ["x", 1]), "of one kind"),
        (lambda: AssetValidation.accepted_values("a", [1, True]), "of one kind"),
        (lambda: AssetValidation.accepted_values("a", [float("nan")]), "finite"),
        (lambda: AssetValidation.accepted_values("a", [b"x"]), "takes texts"),
        (lambda: AssetValidation.matches("a", "(x"), "no regular expression"),
        (lambda: AssetValidation.matches("a", "(?P<n>x)"), "without the P"),
        (lambda: AssetValidation.matches("a", 3), "is a text"),  # type: ignore[arg-type]
        (lambda: AssetValidation.row_count(), "min= or max="),
        (lambda: AssetValidation.row_count(min=-1), "from 0, not -1"),
        (lambda: AssetValidation.row_count(max=True), "from 0, not True"),
        (lambda: AssetValidation.row_count(min=2, max=1), "min=2 is more than max=1"),
        (lambda: AssetValidation.fresh_within(timedelta(0)), "above 0"),
        (lambda: AssetValidation.fresh_within(60), "takes a timedelta"),  # type: ignore[arg-type]
        (lambda: AssetValidation.not_null("a", severity="bad"), '"error" or "warn"'),  # type: ignore[arg-type]
        (lambda: AssetValidation.not_null("a", name=" "), "is a text"),
        (lambda: validation(3), "decorates a function"),  # type: ignore[call-overload]
        (lambda: validation(lambda: True), "takes one argument"),  # type: ignore[arg-type, misc]
        (lambda: validation(lambda a, b: True), "takes one argument"),  # type: ignore[arg-type, misc]
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_are_refused_with_a_sentence(
    declare: Callable[[], object], why: str
) -> None:
    with pytest.raises(DefinitionError, match=why):
        declare()


def test_a_function_that_does_not_return_is_refused() -> None:
    async def later(frame: object) -> bool:
        return True

    with pytest.raises(DefinitionError, match="is async or yields"):
        validation(later)


@pytest.mark.parametrize(
    "regex", [r"\p{Lu}+\h*", r"(?<day>\d+)(?<!x)(?<=\d)", "[a-z]++", r"x\z", "(?<=a{1,3})x"]
)
def test_regular_expressions_of_java_are_taken(regex: str) -> None:
    assert AssetValidation.matches("a", regex).to_json()["regex"] == regex


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("INTEGER", "int"),
        ("long", "bigint"),
        ("decimal", "decimal(10,0)"),
        ("Numeric( 12 , 3 )", "decimal(12,3)"),
        ("decimal(5)", "decimal(5,0)"),
        ("varchar(20)", "varchar(20)"),
        ("ARRAY< array<Integer> >", "array<array<int>>"),
        ("map<string, decimal(4,2)>", "map<string,decimal(4,2)>"),
        (
            "struct<City: string, pos struct<x: double, y:double>>",
            "struct<City:string,pos:struct<x:double,y:double>>",
        ),
        ("struct<>", "struct<>"),
        ("interval  day to second", "interval day to second"),
        ("timestamp_ltz", "timestamp"),
        (SimpleNamespace(simpleString=lambda: "tinyint"), "tinyint"),
    ],
)
def test_types_have_the_spelling_of_spark(written: object, text: str) -> None:
    assert type_text(written) == text


@pytest.mark.parametrize(
    "written",
    [
        *("", "wat", "array", "array<>", "array<int", "map<int>", "list<int>", "struct<int>"),
        *("decimal(1,2,3)", "int(3)", "varchar(1,2)", "array<int>>", "interval fortnight"),
    ],
)
def test_invalid_types_are_refused(written: str) -> None:
    with pytest.raises(DefinitionError):
        type_text(written)


def test_values_are_plain_in_json() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    for values, plain in (
        ([1, 2.5, Decimal("3.5")], [1, 2.5, "3.5"]),
        ([date(2024, 1, 1)], ["2024-01-01"]),
        ([moment], ["2024-01-01 00:00:00+00:00"]),
        ([True], [True]),
    ):
        spec = AssetValidation.accepted_values("a", values).to_json()
        assert json.loads(json.dumps(spec))["values"] == plain


def test_a_result_blocks_when_it_failed_and_is_no_warning() -> None:
    def result(severity: Any, passed: bool) -> ValidationResult:
        return ValidationResult(name="x", severity=severity, passed=passed, message="")

    assert result("error", False).blocks
    assert not result("error", True).blocks
    assert not result("warn", False).blocks
    spec = result("warn", False).to_json()
    assert spec == {
        "name": "x",
        "severity": "warn",
        "passed": False,
        "message": "",
        "observed": {},
        "evaluated": True,
    }
