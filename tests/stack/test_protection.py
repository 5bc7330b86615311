"""The sentences of `slicewise up` and `slicewise doctor` on the protection from user code."""

import os
import pwd

import pytest

from slicewise_server.stack import doctor
from slicewise_server.stack.protection import unprotected, user_of_code


def test_code_that_runs_as_root_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for env in ({}, {"SLICEWISE_RUNNER_USER": "root"}, {"SLICEWISE_RUNNER_USER": "0"}):
        assert "runs as root: it can read and change everything" in unprotected(env)


def test_code_that_has_the_user_of_the_server_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "geteuid", lambda: daemon.pw_uid)
    for env in ({}, {"SLICEWISE_RUNNER_USER": "daemon"}):
        assert "whatever daemon can: the data folder with the passwords" in unprotected(env)
    assert user_of_code({}) == "all runs as daemon, like the server"


def test_runs_that_share_a_user_are_warned_of() -> None:
    env = {"SLICEWISE_RUNNER_USER": "no-such-user"}
    assert user_of_code(env) == "all runs as no-such-user"
    assert "SLICEWISE_RUNNER_USERS gives each a user of its own" in unprotected(env)


def test_runs_with_a_user_each_are_not_warned_of() -> None:
    env = {"SLICEWISE_RUNNER_USER": "spark", "SLICEWISE_RUNNER_USERS": "20000-20031"}
    assert user_of_code(env) == "each run as a user of its own, 20000-20031"
    assert unprotected(env) == ""


def test_the_doctor_says_so_and_it_is_no_reason_to_fail() -> None:
    (finding,) = [finding for finding in doctor.examine({}) if finding.name == "User code"]
    assert finding.good
    assert finding.warning == unprotected({})
