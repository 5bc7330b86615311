"""Numbers among the settings that have to be above zero."""

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from config.bounds import above_zero


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
