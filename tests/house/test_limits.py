"""Limits of measures: a value above its limit is reported, and no limit rises."""

from pathlib import Path

import pytest

from tests.house import __main__ as command
from tests.house.limits import lower_limits, read_limits, violations
from tests.house.measure import Measure


def measure(value: float) -> Measure:
    """Make a measure of long modules."""
    return Measure("long_modules", "modules over 300 lines", value, [], "Split the module.")


def test_a_value_at_its_limit_is_taken() -> None:
    assert list(violations([measure(7)], {"long_modules": 7})) == []


def test_a_value_above_its_limit_is_reported_with_advice_and_the_way_to_the_places() -> None:
    (message,) = violations([measure(8)], {"long_modules": 7})
    assert message == (
        "modules over 300 lines: 8, and the limit is 7. Split the module."
        " `python -m tests.house --where long_modules` lists the places."
    )


def test_a_measure_without_a_limit_is_reported() -> None:
    (message,) = violations([measure(0)], {})
    assert message == "long_modules has no limit in limits.toml."


def test_a_limit_of_nothing_is_reported() -> None:
    (message,) = violations([measure(0)], {"long_modules": 0, "long_lines": 3})
    assert message == "limits.toml has a limit of long_lines, which is no measure."


@pytest.mark.parametrize(
    ("old", "value", "new"), [(7.5, 7.11, 7.2), (7.5, 9, 7.5), (None, 7.11, 7.2), (0, 0, 0)]
)
def test_limits_sink_to_the_present_value_and_never_rise(
    tmp_path: Path, old: float | None, value: float, new: float
) -> None:
    file = tmp_path / "limits.toml"
    if old is not None:
        file.write_text(f"long_modules = {old}\n")
    lower_limits([measure(value)], file)
    assert read_limits(file) == {"long_modules": new}


def test_the_check_fails_above_a_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "all_measures", lambda checkout: [measure(8)])
    monkeypatch.setattr(command, "read_limits", lambda: {"long_modules": 7})
    assert command.main(["--check"]) == 1
    assert "the limit is 7" in capsys.readouterr().err
    monkeypatch.setattr(command, "read_limits", lambda: {"long_modules": 8})
    assert command.main(["--check"]) == 0
