"""`After`, `Fresh` and `Freshness` in definition files: the JSON for servers, and refusals."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slicewise import After, Asset, DefinitionError, Fresh, Freshness, PartitionByInterval, asset
from slicewise.declaring.schedules import fresh_names, schedule_names, schedule_text, time_terms
from slicewise.loading.importing import load_bundle

A, B, MODEL = Asset.ref("a"), Asset.ref("b"), Asset.ref("model")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAILY = PartitionByInterval("@daily")
SIX_HOURS = {"kind": "after", "seconds": 21_600}

_HEAD = (
    "from datetime import timedelta\n"
    "from slicewise import After, Asset, Cron, Fresh, Freshness, PartitionByInterval, asset\n"
    "from slicewise import Latest, PartitionBySequence\n"
    "hours, days = timedelta(hours=1), timedelta(days=1)\n"
    "a, b, model = Asset('a'), Asset('b'), Asset('model',"
    " partition=PartitionByInterval('@monthly'))\n"
    "whole = Asset('whole')\ndaily = PartitionByInterval('@daily')\n"
)


def declared(schedule: Any = None, **options: Any) -> dict[str, Any]:
    """Return the JSON that servers get of a daily asset with this schedule."""

    @asset(schedule=schedule, partition=DAILY, **options)
    def decorated() -> None: ...

    return decorated.to_json()


def errors(tmp_path: Path, lines: str) -> list[str]:
    """Return the errors of a file with these lines, each with its own line."""
    (tmp_path / "a.py").write_text(_HEAD + lines)
    return [
        f"{error['line'] - _HEAD.count(chr(10))}: {error['message']}"
        for error in load_bundle(tmp_path)["errors"]
    ]


def test_terms_of_lateness_combine_with_assets_and_times() -> None:
    spec = declared((A & B) | (A & After(6 * HOUR, remake=True)))["schedule"]
    assert spec["of"][1]["of"][1] == {**SIX_HOURS, "remake": True}
    assert schedule_text(spec) == "(a & b) | (a & After(6:00:00, remake=True))"
    assert [term["kind"] for term in time_terms(spec)] == ["after"]
    spec = declared(A & Fresh(MODEL, within=30 * DAY))["schedule"]
    assert spec["of"][1] == {"kind": "fresh", "name": "model", "seconds": 2_592_000}
    assert (schedule_names(spec), fresh_names(spec)) == (["a"], ["model"])
    assert schedule_text(spec) == "a & Fresh(model, within=30 days, 0:00:00)"


def test_after_may_be_the_whole_schedule() -> None:
    spec = declared(After(6 * HOUR))["schedule"]
    assert spec == SIX_HOURS
    assert schedule_text(spec) == "After(6:00:00)"


def test_terms_are_values_with_a_text() -> None:
    assert {After(HOUR), After(HOUR), After(HOUR, remake=True)} == {
        After(HOUR), After(HOUR, remake=True),
    }  # fmt: skip
    assert repr(After(HOUR, remake=True)) == "After(timedelta(seconds=3600), remake=True)"
    assert repr(Fresh(MODEL, within=DAY)) == (
        "Fresh(AssetReference('model'), within=timedelta(days=1))"
    )


def test_a_freshness_is_in_the_json_only_where_it_is_declared() -> None:
    assert "freshness" not in declared()
    assert declared(freshness=Freshness(within=2 * HOUR))["freshness"] == {"within": 7200}
    freshness = Freshness(within=2 * HOUR, warn=HOUR)
    assert freshness.to_json() == {"within": 7200, "warn": 3600}
    assert Freshness.from_json(freshness.to_json()) == freshness


def test_an_outlet_and_an_asset_of_another_program_have_a_freshness() -> None:
    told = Asset("told", partition=DAILY, freshness=Freshness(within=HOUR))
    assert told.to_json()["freshness"] == {"within": 3600}
    assert "freshness" not in Asset("untold").to_json()

    @asset.multi(
        outlets=[Asset("one", freshness=Freshness(within=HOUR)), Asset("two")],
        partition=DAILY, freshness=Freshness(within=DAY),
    )  # fmt: skip
    def both() -> None: ...

    spec = both.producer_spec
    assert [spec.freshness_of(outlet) for outlet in spec.outlets] == [
        {"within": 3600}, {"within": 86_400},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("schedule=a & After(6)", "After takes a timedelta, not 6; write timedelta(seconds=6)"),
        ("schedule=a & After('6h')", "write After(timedelta(hours=6)), for example"),
        ("schedule=a & After(-hours)", "a positive number of whole seconds"),
        ("schedule=a & After(timedelta(seconds=1.5))", "a positive number of whole seconds"),
        ("schedule=a & After(timedelta(days=40_000))", "After is at most 100 years"),
        ("schedule=a & After(hours, remake=1)", "remake is True or False, not 1"),
        ("schedule=a & After", "the class After; write After(...)"),
        ("schedule=After(hours, remake=True)", "this schedule names no asset; leave remake out"),
        ("schedule=a & Fresh('b', within=days)", "not the text 'b'; write Asset.ref('b')"),
        ("schedule=a & Fresh(b, within=30)", "write timedelta(seconds=30)"),
        ("schedule=Fresh(b, within=days)", "Fresh(b) alone makes no partition due"),
        ("schedule=a | Fresh(b, within=days)", "write (... & Fresh(...))"),
        (
            "schedule=a & Fresh(Asset.ref('late'), within=days)",
            "Fresh names 'late', the asset that the run writes",
        ),
        (
            "schedule=a & Fresh(model, within=30 * days)",
            "Fresh(model) does not say which partitions of 'model' count; write"
            " upstream={model: Latest()}, or another mapping",
        ),
        ("freshness=hours", "write Freshness(within=timedelta(seconds=3600))"),
        ("freshness=Freshness(within=2)", "write timedelta(seconds=2)"),
        ("freshness=Freshness(within=hours, warn=hours)", "is not shorter than within="),
    ],
)
def test_a_senseless_term_is_refused_with_its_line(
    tmp_path: Path, arguments: str, message: str
) -> None:
    (error,) = errors(tmp_path, f"@asset({arguments}, partition=daily)\ndef late(): ...\n")
    assert error.startswith("1: asset 'late': ")
    assert message in error


@pytest.mark.parametrize("partition", ["None", "PartitionBySequence(['x'])"])
def test_terms_that_count_from_windows_are_refused_without_windows(
    tmp_path: Path, partition: str
) -> None:
    lines = (
        f"@asset(schedule=a & After(hours), partition={partition})\ndef one(): ...\n"
        f"@asset(freshness=Freshness(within=hours), partition={partition})\ndef two(): ...\n"
    )
    first, *_ = errors(tmp_path, lines)
    assert (
        "After counts from the end of a window, and this asset has no partitions by time" in first
    )
    (second,) = errors(tmp_path, "\n".join(lines.split("\n")[2:]))
    assert "write partition=PartitionByInterval" in second
    (told,) = errors(
        tmp_path, f"Asset('x', freshness=Freshness(within=hours), partition={partition})\n"
    )
    assert "asset 'x': freshness counts from the end of a window" in told


def test_an_outlet_without_windows_has_no_freshness(tmp_path: Path) -> None:
    (error,) = errors(
        tmp_path,
        "@asset.multi(outlets=[Asset('x', freshness=Freshness(within=hours))])\ndef f(): ...\n",
    )
    assert "the outlet 'x': freshness counts from the end of a window" in error


def test_a_mapping_says_which_partitions_of_the_model_count(tmp_path: Path) -> None:
    lines = (
        "@asset(schedule=a & Fresh(model, within=30 * days), upstream={model: Latest()},"
        " partition=daily)\ndef scored(): ...\n"
        "@asset(schedule=a & Fresh(whole, within=days), partition=daily)\ndef other(): ...\n"
    )
    assert errors(tmp_path, lines) == []


def test_a_model_that_is_trained_from_what_needs_it_fresh_is_no_circle(tmp_path: Path) -> None:
    lines = (
        "@asset(schedule=a & Fresh(Asset.ref('trained'), within=days), partition=daily)\n"
        "def scored(): ...\n@asset(schedule=scored)\ndef trained(): ...\n"
    )
    assert errors(tmp_path, lines) == []


def test_a_term_is_refused_at_its_own_site() -> None:
    with pytest.raises(DefinitionError, match="After takes a timedelta"):
        After("6h")  # type: ignore[arg-type]
