"""The sentences of `slicewise up` and `slicewise doctor` on the protection from user code."""

import os
import pwd

import pytest

from slicewise_server.stack import doctor
from slicewise_server.stack.code_account import CodeAccount, default_account
from slicewise_server.stack.folder import default_folder
from slicewise_server.stack.protection import unprotected, user_of_code


def clause_of(env: dict[str, str]) -> str:
    return user_of_code(env, default_account(env, default_folder(env)))


def warning_of(env: dict[str, str]) -> str:
    return unprotected(env, default_account(env, default_folder(env)))


def test_code_that_runs_as_root_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Root alone can try what another user can use: this account stands for such a trial.
    warnings = [unprotected({}, CodeAccount(obstacle="this machine has no user nobody"))]
    warnings += [warning_of({"SLICEWISE_RUNNER_USER": name}) for name in ("root", "0")]
    for warning in warnings:
        assert "runs as root: it can read and change everything" in warning


def test_code_that_has_the_user_of_the_server_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "geteuid", lambda: daemon.pw_uid)
    for env in ({}, {"SLICEWISE_RUNNER_USER": "daemon"}):
        assert "whatever daemon can: the data folder with the passwords" in warning_of(env)
    assert clause_of({}) == "all runs as daemon, like the server"


def test_runs_that_share_a_user_are_warned_of() -> None:
    env = {"SLICEWISE_RUNNER_USER": "no-such-user"}
    assert clause_of(env) == "all runs as no-such-user"
    assert "SLICEWISE_RUNNER_USERS gives each run a user of its own" in warning_of(env)


def test_runs_with_a_user_each_are_not_warned_of() -> None:
    env = {"SLICEWISE_RUNNER_USER": "spark", "SLICEWISE_RUNNER_USERS": "20000-20031"}
    assert clause_of(env) == "each run as a user of its own, 20000-20031"
    assert warning_of(env) == ""


def test_the_doctor_says_so_and_it_is_no_reason_to_fail() -> None:
    (finding,) = [finding for finding in doctor.examine({}) if finding.name == "User code"]
    assert finding.good
    assert finding.warning == warning_of({})
