"""Validation results of runners are kept, as far as the database can hold the results."""

import json
from typing import Any

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.inputs import read_inputs
from assets_app.execution.attempt.validations import MOST_RESULTS, ResultKeeper
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Gateway, Run, ValidationResult
from slicewise.runner.wire import WireError, decode
from tests.attempts import begin_next
from tests.factories import asset

pytestmark = pytest.mark.django_db
RESULT = {
    "name": "row_count",
    "severity": "error",
    "passed": False,
    "evaluated": True,
    "message": "The data has 1 row instead of at least 2 rows.",
    "description": "The data has at least 2 rows.",
    "observed": {"rows": 1},
}


@pytest.fixture
def attempt(alice: User, gateway: Gateway) -> Attempt:
    """Begin an attempt of an asset that reads another asset."""
    asset("raw")
    sales = asset("sales", upstream={"raw": None})
    run = materialize(MaterializeRequest(asset=sales), user=alice).runs.get()
    return begin_next(run, gateway)


def said(*results: Any, asset: Any = "sales", when: Any = "outlet") -> dict[str, Any]:
    return {"type": "validated", "when": when, "asset": asset, "results": list(results)}


def test_results_are_kept_in_order_also_when_the_attempt_fails(attempt: Attempt) -> None:
    keeper = ResultKeeper(attempt, lambda: True)
    keeper.hear(said(RESULT | {"passed": True, "severity": "warn"}, asset="raw", when="inlet"))
    keeper.hear(said(RESULT))
    ending.fail(attempt.row, Failure(error="sales does not pass row_count"))
    first, second = ValidationResult.objects.select_related("asset")
    assert (first.asset.name, first.when, first.passed) == ("raw", "inlet", True)
    assert (second.asset.name, second.when, second.outcome) == ("sales", "outlet", "failed")
    assert second.observed == {"rows": 1}
    assert second.attempt == attempt.row
    assert second.blocks
    assert not first.blocks


@pytest.mark.parametrize(
    "content",
    [
        None,
        "no",
        RESULT | {"passed": 1},
        RESULT | {"severity": "fatal"},
        RESULT | {"name": ["x"]},
        {key: value for key, value in RESULT.items() if key != "message"},
    ],
)
def test_invalid_results_are_left_out(attempt: Attempt, content: Any) -> None:
    ResultKeeper(attempt, lambda: True).hear(said(content, RESULT))
    assert ValidationResult.objects.get().message == RESULT["message"]


@pytest.mark.parametrize(
    "message",
    [
        said(RESULT, asset="somebody else's"),
        said(RESULT, asset=["sales"]),
        said(RESULT, when="never"),
        said(RESULT, when=["inlet"]),
        said() | {"results": "many"},
    ],
)
def test_a_message_that_makes_no_sense_stores_nothing(
    attempt: Attempt, message: dict[str, Any]
) -> None:
    ResultKeeper(attempt, lambda: True).hear(message)
    assert not ValidationResult.objects.exists()


def test_one_attempt_stores_so_much_and_no_more(attempt: Attempt) -> None:
    keeper = ResultKeeper(attempt, lambda: True)
    for _ in range(3):
        keeper.hear(said(*[RESULT] * (MOST_RESULTS // 2)))
    assert ValidationResult.objects.count() == MOST_RESULTS


def test_texts_are_shortened_and_fit_for_the_database(attempt: Attempt) -> None:
    ResultKeeper(attempt, lambda: True).hear(
        said(
            RESULT | {"name": "n\0" * 5000, "message": "m\ud800" * 9000, "description": "d" * 9000}
        )
    )
    result = ValidationResult.objects.get()
    assert len(result.name) == 200
    assert len(result.message) == len(result.description) == 2000
    assert "\0" not in result.name


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ({"examples": ["a\0b"]}, {"examples": ["a\N{REPLACEMENT CHARACTER}b"]}),
        ({"examples": ["x" * 9000]}, {}),
        ({"newest": float("nan")}, {}),
        (json.loads("[" * 900 + "]" * 900), {}),
        ({"deep": json.loads("[" * 900 + "]" * 900)}, {}),
        (["no facts"], {}),
        (None, {}),
    ],
)
def test_facts_are_kept_where_the_database_can_hold_them(
    attempt: Attempt, observed: Any, expected: Any
) -> None:
    ResultKeeper(attempt, lambda: True).hear(said(RESULT | {"observed": observed}))
    assert ValidationResult.objects.get().observed == expected


def test_a_line_that_is_nested_too_deep_is_no_message() -> None:
    with pytest.raises(WireError):
        decode(b'{"type":' + b"[" * 200_000)


def test_a_run_is_told_how_old_what_it_reads_is_and_who_says_what_of_it(alice: User) -> None:
    raw = asset("raw")
    outside = Asset.objects.create(
        name="outside", bundle=raw.bundle, file="others.py", outlet_validations=[{"kind": "x"}]
    )
    trigger = asset("trigger", outlet_validations=[{"kind": "x"}])
    sales = asset(
        "sales",
        upstream={"raw": None, "outside": None},
        options={
            "schedule": {"kind": "asset", "name": "trigger"},
            "inlet_validations": {"trigger": [{"kind": "x"}]},
        },
    )
    moment = "2024-01-0{}T00:00:00+00:00"
    for number, upstream in enumerate((raw, outside, trigger), 1):
        AssetPartition.objects.create(
            asset=upstream, identity="whole", version=1, state="materialized",
            materialized_at=moment.format(number),
        )  # fmt: skip
    materialize(MaterializeRequest(asset=sales), user=alice)
    read = {
        upstream_input.asset.name: upstream_input
        for upstream_input in read_inputs(Run.objects.get(), [""])
    }
    facts = {name: upstream_input.to_json() for name, upstream_input in read.items()}
    assert facts["raw"]["materialized_at"] == moment.format(1)
    assert facts["raw"]["declared_in"] is None
    assert facts["outside"]["declared_in"] == "others.py"
    # What a producer makes was validated when it was made; what is asked of it here is read.
    assert facts["trigger"]["declared_in"] is None
    assert read["trigger"].is_inlet
