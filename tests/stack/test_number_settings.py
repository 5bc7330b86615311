"""Numbers among the settings that have to be above zero."""

import os
import subprocess
import sys

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from slicewise_server.number_settings import above_zero, at_least_one, memory


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_pause_that_never_adds_up_stops_the_start(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAUSE", text)
    with pytest.raises(ImproperlyConfigured, match="PAUSE has to be above 0, not"):
        above_zero(environ.Env(), "PAUSE", default=1.0)


def test_a_pause_above_zero_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAUSE", "0.5")
    assert above_zero(environ.Env(), "PAUSE", default=1.0) == 0.5
    assert above_zero(environ.Env(), "OTHER", default=2.0) == 2.0


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_count_below_one_stops_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNT", text)
    with pytest.raises(ImproperlyConfigured, match=f"COUNT has to be 1 or more, not {text}."):
        at_least_one(environ.Env(), "COUNT", default=10)


def test_a_count_of_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNT", "1")
    assert at_least_one(environ.Env(), "COUNT", default=10) == 1
    assert at_least_one(environ.Env(), "OTHER", default=10) == 10


@pytest.mark.parametrize("text", ["0", "2", "-2g", "0g", "two gigabytes", "1e9", "9" * 30 + "g"])
def test_a_text_that_is_no_amount_of_memory_stops_the_start(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY", text)
    with pytest.raises(ImproperlyConfigured, match=r'MEMORY: an amount .* such as "512m"'):
        memory(environ.Env(), "MEMORY")


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 2**29), ("2g", 2**31), ("1.5 GiB", 3 * 2**29), ("4KB", 4096)]
)
def test_an_amount_of_memory_is_taken(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY", text)
    assert memory(environ.Env(), "MEMORY") == size
    assert memory(environ.Env(), "OTHER") is None


@pytest.mark.parametrize(
    "setting", ["SIGN_IN_ATTEMPTS", "SIGN_IN_NAMES_PER_ADDRESS", "SIGN_IN_ATTEMPTS_PER_NAME"]
)
def test_a_limit_on_sign_ins_that_allows_none_stops_the_start(setting: str) -> None:
    environment = os.environ | {setting: "0", "SLICEWISE_COMMAND": "assets"}
    command = [sys.executable, "-c", "import slicewise_server.settings"]
    started = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert started.returncode == 1
    assert f"{setting} has to be 1 or more, not 0." in started.stderr
