"""Validations are evaluated on a real Spark Connect server."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from slicewise import AssetValidation, ValidationResult, spark, validation
from slicewise.platform_failures import is_platform_failure
from slicewise.validations import check_all

NOW = datetime(2024, 1, 2, 12, tzinfo=UTC)
SCHEMA = """
    shop string, phone string, pieces int, price decimal(10,2), weight double, open boolean,
    day date, at timestamp, local timestamp_ntz, address struct<city: string, `a.b`: int>,
    tags array<string>, stock map<string, int>, `dot.ted` string
"""
Session = Any
Frame = Any


@pytest.fixture(scope="module")
def session(spark_remote: str) -> Iterator[Session]:
    """Open a session in a zone far from UTC; the zone is to make no difference."""
    opened = spark.open_session(spark_remote, str(uuid.uuid4()))
    opened.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield opened
    spark.close_session(opened)


@pytest.fixture(scope="module")
def frame(session: Session) -> Frame:
    """Return three rows; the last row is all null."""
    return session.sql("""
        SELECT 'mitte' shop, '+49 30' phone, 1 pieces, 1.50BD price, 0.5D weight, true open,
            date'2024-01-01' day, timestamp'2024-01-01T12:00:00Z' at,
            timestamp_ntz'2024-01-01T12:00:00' local,
            named_struct('city', 'Berlin', 'a.b', 1) address, array('x') tags, map('a', 1) stock,
            'd' `dot.ted`
        UNION ALL SELECT 'wedding', '030\n', 2, 2.50BD, double('NaN'), false, date'2024-01-02',
            timestamp'2024-01-02T00:00:00Z', timestamp_ntz'2024-01-02T00:00:00',
            named_struct('city', CAST(NULL AS STRING), 'a.b', 1), array(), map(), 'd'
        UNION ALL SELECT null, null, null, null, null, null, null, null, null, null, null, null,
            null
    """)


@contextmanager
def counted_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the questions to the server within the block, one for each `collect`."""
    from pyspark.sql.connect.dataframe import DataFrame

    questions: list[str] = []
    collect = DataFrame.collect

    def counting(self: Frame) -> Any:
        questions.append("collect")
        return collect(self)

    with monkeypatch.context() as patch:
        patch.setattr(DataFrame, "collect", counting)
        yield questions


def failed(result: ValidationResult) -> str:
    """Return the message of a validation that was evaluated and failed."""
    assert result.evaluated, result.message
    assert not result.passed
    return result.message


def refused(result: ValidationResult) -> str:
    """Return the message of a validation that could not be evaluated."""
    assert not result.evaluated
    assert not result.passed
    return result.message


def test_columns_are_there_or_named(frame: Frame) -> None:
    present = AssetValidation.has_columns("shop", "address.city", "dot.ted", "address")
    assert present.check(frame).passed
    missing = AssetValidation.has_columns("shop", "Shop", "address.zip", "tags.x").check(frame)
    assert failed(missing) == "The data does not have the columns 'Shop', 'address.zip', 'tags.x'."
    assert missing.observed == {"missing": ["Shop", "address.zip", "tags.x"]}


def test_types_are_compared_in_sparks_spelling(frame: Frame) -> None:
    types = {
        "shop": "STRING",
        "price": "decimal(10,2)",
        "tags": "array<string>",
        "stock": "map<string,integer>",
        "address.city": "string",
        "local": "timestamp_ntz",
    }
    # What the frame's own schema says, in its own classes, is right as well.
    own_types = {field.name: field.dataType for field in frame.schema.fields}
    assert AssetValidation.has_types(own_types).check(frame).passed
    result = AssetValidation.has_types({**types, "price": "decimal(12,2)", "no": "int"})
    wrong = result.check(frame)
    assert "'price' is decimal(3,2) instead of decimal(12,2); 'no' is missing instead of int" in (
        failed(wrong)
    )
    assert wrong.observed["wrong"]["no"] == {"expected": "int", "found": None}
    assert AssetValidation.has_types({**types, "price": "decimal(3,2)"}).check(frame).passed


def test_nulls_are_counted_row_by_row_and_column_by_column(frame: Frame) -> None:
    result = AssetValidation.not_null("shop", "address.city", "weight").check(frame)
    assert failed(result) == (
        "2 of 3 rows hold a null: 1 in 'shop', 2 in 'address.city', 1 in 'weight'."
    )
    assert result.observed == {
        "rows": 3,
        "failing": 2,
        "nulls": {"shop": 1, "address.city": 2, "weight": 1},
    }
    complete = frame.where("shop IS NOT NULL")
    assert AssetValidation.not_null("shop", "weight", "tags", "stock").check(complete).passed


def test_rows_are_unique_by_their_columns_and_nulls_are_not_asked(session: Session) -> None:
    frame = session.sql("""
        SELECT * FROM VALUES ('a', 1, 0D), ('a', 2, 1D), ('b', 1, double('NaN')),
            ('c', 1, double('NaN')), (null, 1, 2D), (null, 1, 3D) AS t(shop, number, weight)
    """)
    assert AssetValidation.unique("shop", "number").check(frame).passed
    result = AssetValidation.unique("shop").check(frame)
    assert failed(result) == "2 rows share 1 value of 'shop', such as 'a'."
    assert result.observed == {"failing": 2, "values": 1, "examples": ["a"]}
    both = AssetValidation.unique("number", "weight").check(frame)
    assert both.observed["examples"] == ["1, NaN"]
    struct = frame.selectExpr("named_struct('a', number) AS inside", "array(number) AS list")
    assert AssetValidation.unique("inside.a", "list").check(struct).observed["failing"] == 5
    many = session.range(100).selectExpr("id % 30 AS id")
    assert len(AssetValidation.unique("id").check(many).observed["examples"]) == 5


def test_a_validation_of_values_that_spark_cannot_compare_fails_alone(session: Session) -> None:
    frame = session.sql("SELECT parse_json('1') AS anything")
    results = check_all(
        frame, [AssetValidation.unique("anything"), AssetValidation.row_count(min=1)]
    )
    assert "VARIANT" in refused(results[0])
    assert results[1].passed


def test_values_are_accepted_by_kind(frame: Frame) -> None:
    moments = [datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)]
    accepted: dict[str, list[Any]] = {
        "shop": ["mitte", "wedding"],
        "pieces": [1, 2.0, Decimal(7)],
        "price": [Decimal("1.5"), 2.5],
        "open": [True, False],
        "day": [date(2024, 1, 1), date(2024, 1, 2)],
        "at": moments,
        "local": [moment.replace(tzinfo=None) for moment in moments],
        "address.city": ["Berlin"],
    }
    validations = [AssetValidation.accepted_values(*pair) for pair in accepted.items()]
    first = [AssetValidation.accepted_values(name, values[:1]) for name, values in accepted.items()]
    results = check_all(frame, [*validations, *first])
    assert [result.passed for result in results[:8]] == [True] * 8
    assert [result.passed for result in results[8:]] == [False] * 7 + [True]
    result = AssetValidation.accepted_values("pieces", [2]).check(frame)
    assert failed(result) == "1 of 3 rows hold another value in 'pieces', such as '1'."
    assert result.observed == {"rows": 3, "failing": 1, "examples": ["1"]}


def test_a_column_is_not_cast_to_the_kind_of_the_accepted_values(frame: Frame) -> None:
    result = AssetValidation.accepted_values("shop", [1, 2]).check(frame)
    assert refused(result) == (
        "The validation cannot be evaluated: 'shop' is of type string, which is compared with no"
        " number."
    )


def test_texts_match_from_end_to_end(session: Session, frame: Frame) -> None:
    phone = AssetValidation.matches("phone", r"\+?[0-9 ]+").check(frame)
    assert phone.observed == {"rows": 3, "failing": 1, "examples": ["030\n"]}
    texts = session.createDataFrame([("a.c|(x)\\d$",), ("ab",), ("É1",), ("",)], "t string")

    matching = {
        r"a\.c\|\(x\)\\d\$": 1,
        "a|ab": 1,
        "b|a": 0,
        "": 1,
        r"(?i)AB|\p{L}\d": 2,
        "(?s).*": 4,
        "[^'\"]*": 4,
    }
    results = check_all(texts, [AssetValidation.matches("t", regex) for regex in matching])
    passing = [result.observed["rows"] - result.observed["failing"] for result in results]
    assert passing == list(matching.values())
    assert "texts" in refused(AssetValidation.matches("pieces", "1").check(frame))


def test_a_regular_expression_that_java_refuses_fails_alone(frame: Frame) -> None:
    wrong = AssetValidation.matches("shop", "(m)?(?(1)itte|x)")
    results = check_all(frame, [AssetValidation.row_count(min=3), wrong])
    assert results[0].passed
    assert "The validation cannot be evaluated" in refused(results[1])


def test_examples_are_few_distinct_and_short(session: Session) -> None:
    frame = session.range(1000).selectExpr("concat(id % 40, repeat('x', 500)) AS text")
    examples = AssetValidation.accepted_values("text", ["ok"]).check(frame).observed["examples"]
    assert len(set(examples)) == len(examples) == 5
    assert {len(example) for example in examples} == {100}


def test_rows_are_counted(session: Session, frame: Frame) -> None:
    assert AssetValidation.row_count(min=3, max=3).check(frame).passed
    many = AssetValidation.row_count(max=2).check(frame)
    assert failed(many) == "The data has 3 rows instead of at most 2 rows."
    few = AssetValidation.row_count(min=1).check(session.range(0))
    assert failed(few) == "The data has 0 rows instead of at least 1 row."
    assert few.observed == {"rows": 0}


@pytest.mark.parametrize("column", ["at", "local", "day"])
def test_freshness_is_that_of_the_newest_value(frame: Frame, column: str) -> None:
    half_a_day = AssetValidation.fresh_within(timedelta(hours=12), column=column)
    fresh = half_a_day.check(frame, now=NOW)
    assert fresh.passed
    assert fresh.observed == {"newest": "2024-01-02T00:00:00+00:00", "age_seconds": 43200.0}
    stale = half_a_day.check(frame, now=NOW + timedelta(seconds=1))
    assert failed(stale).endswith(
        " is 2024-01-02 00:00:00 UTC, 12:00:01 ago instead of at most 12:00:00."
    )
    assert half_a_day.check(frame, now=NOW - timedelta(days=9)).passed
    empty = half_a_day.check(frame.where("shop IS NULL"), now=NOW)
    assert failed(empty) == f"The column {column!r} has no value."


def test_freshness_without_a_column_is_that_of_the_making(frame: Frame) -> None:
    an_hour = AssetValidation.fresh_within(timedelta(hours=1))
    assert an_hour.check(frame, now=NOW, materialized_at=NOW - timedelta(hours=1)).passed
    late = an_hour.check(frame, now=NOW, materialized_at=NOW - timedelta(hours=2))
    assert failed(late) == (
        "The data was materialized at 2024-01-02 10:00:00 UTC, 2:00:00 ago instead of at most"
        " 1:00:00."
    )
    assert "time of materialization is not known" in refused(an_hour.check(frame, now=NOW))
    wrong = AssetValidation.fresh_within(timedelta(hours=1), column="shop").check(frame)
    assert "timestamp or date" in refused(wrong)
    for moments in ({"now": datetime(2024, 1, 1)}, {"materialized_at": datetime(2024, 1, 1)}):
        with pytest.raises(ValueError, match="needs a time zone"):
            an_hour.check(frame, **moments)


def test_an_empty_frame_passes_what_asks_of_values(session: Session) -> None:
    empty = session.createDataFrame([], SCHEMA)
    results = check_all(
        empty,
        [
            AssetValidation.has_columns("shop"),
            AssetValidation.not_null("shop", "address.city"),
            AssetValidation.unique("shop", "day"),
            AssetValidation.accepted_values("shop", ["x"]),
            AssetValidation.matches("phone", "x"),
        ],
    )
    assert [result.passed for result in results] == [True] * 5
    assert results[2].observed == {"failing": 0, "values": 0, "examples": []}


def test_a_column_that_is_not_there_fails_alone_with_a_sentence(frame: Frame) -> None:
    results = check_all(
        frame,
        [
            AssetValidation.not_null("shop"),
            AssetValidation.not_null("shp"),
            AssetValidation.unique("nowhere"),
            AssetValidation.matches("address.town", "x"),
        ],
    )
    assert "1 in 'shop'" in failed(results[0])
    assert refused(results[1]) == (
        "The validation cannot be evaluated: the data has no column 'shp'; did you mean 'shop'?"
    )
    assert "the columns are 'shop', 'phone'" in refused(results[2])
    assert "no column 'address.town'" in refused(results[3])


def test_a_column_that_is_there_twice_cannot_be_asked(frame: Frame) -> None:
    twice = frame.select("shop", "shop", "phone")
    results = check_all(
        twice, [AssetValidation.not_null("shop"), AssetValidation.not_null("phone")]
    )
    assert "2 columns 'shop'" in refused(results[0])
    assert "1 in 'phone'" in failed(results[1])


def test_all_but_unique_is_one_question_to_spark(
    frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = [
        AssetValidation.has_columns("shop"),
        AssetValidation.has_types({"shop": "string"}),
        AssetValidation.not_null("shop"),
        AssetValidation.accepted_values("pieces", [1, 2]),
        AssetValidation.matches("phone", ".*"),
        AssetValidation.row_count(min=1),
        AssetValidation.fresh_within(timedelta(1), column="at"),
    ]
    with counted_jobs(monkeypatch) as questions:
        results = check_all(frame, together, now=NOW)
    assert len(questions) == 1
    with counted_jobs(monkeypatch) as questions:
        unique = [AssetValidation.unique("shop"), AssetValidation.unique("phone")]
        assert check_all(frame, [*together, *unique], now=NOW)[:7] == results
    assert len(questions) == 3
    with counted_jobs(monkeypatch) as questions:
        check_all(frame, together[:2])
    assert questions == []


def test_an_error_inside_the_frame_is_the_failure_of_who_meets_it(session: Session) -> None:
    frame = session.sql("SELECT 1 AS good, CAST('x' AS INT) AS bad")
    results = check_all(frame, [AssetValidation.not_null("bad"), AssetValidation.not_null("good")])
    assert "CAST_INVALID_INPUT" in refused(results[0])
    assert results[1].passed


def test_functions_say_what_is_wrong_or_nothing(frame: Frame) -> None:
    @validation
    def few(frame: Frame) -> bool:
        """There are few rows."""
        return bool(frame.count() < 3)

    @validation(severity="warn", name="no rows at all")
    def says(frame: Frame) -> str:
        return "there are rows" if frame.count() else ""

    @validation
    def asserts(frame: Frame) -> None:
        assert frame.count() == 0, f"{frame.count()} rows at s3://u:secret@bucket/x"

    @validation
    def raises(frame: Frame) -> bool:
        return bool(1 / 0)

    @validation
    def returns_a_frame(frame: Frame) -> Any:
        return frame

    functions = [few, says, asserts, raises, returns_a_frame]
    results = check_all(frame, functions)
    assert [failed(result).splitlines()[0] for result in results[:3]] == [
        "few returned False.",
        "there are rows",
        "3 rows at s3://u:***@bucket/x",
    ]
    assert [results[1].name, results[1].blocks, results[0].blocks] == [
        "no rows at all",
        False,
        True,
    ]
    message = refused(results[3])
    assert (
        "raises raised ZeroDivisionError: division by zero (test_validations.py, line " in message
    )
    assert "returned a DataFrame; return True or" in refused(results[4])
    assert [result.passed for result in check_all(frame.limit(0), functions)][:3] == [True] * 3


def test_a_stand_in_for_a_frame_is_asked_by_functions_only() -> None:
    @validation
    def not_empty(rows: list[int]) -> bool:
        return bool(rows)

    results = check_all([1], [not_empty, AssetValidation.row_count(min=1)])
    assert results[0].passed
    assert "needs a DataFrame of Spark, not list" in refused(results[1])


def test_a_server_that_is_gone_is_nobodys_failed_validation(spark_remote: str) -> None:
    closed_session = spark.open_session(spark_remote, str(uuid.uuid4()))
    frame = closed_session.range(1)
    spark.interrupt(spark_remote, closed_session.session_id)
    with pytest.raises(Exception, match="HANDLE") as raised:
        AssetValidation.row_count(min=1).check(frame)
    assert is_platform_failure(raised.value)
