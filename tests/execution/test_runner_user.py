"""As whom user code runs."""

import os
import pwd
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ImproperlyConfigured

from assets_app.execution.data.runner_user import own_folder, runner_user, shared_folder


def test_without_a_setting_it_is_the_worker_s_own(settings: Any, tmp_path: Path) -> None:
    settings.RUNNER_USER, settings.DATA_FOLDER = "", tmp_path
    assert runner_user() is None
    assert own_folder("bundles") == tmp_path / "bundles"
    assert own_folder("bundles").stat().st_uid == os.geteuid()
    assert shared_folder("submitted") == tmp_path / "submitted"


@pytest.mark.parametrize("name", ["no-such-user", "4294967290"])
def test_a_user_that_is_not_there_is_refused(settings: Any, name: str) -> None:
    settings.RUNNER_USER = name
    with pytest.raises(ImproperlyConfigured, match="this host has no such user"):
        runner_user()


def test_only_root_may_name_another_user(settings: Any) -> None:
    settings.RUNNER_USER = "nobody"
    with (
        patch("os.geteuid", return_value=12345),
        pytest.raises(ImproperlyConfigured, match="started by root"),
    ):
        runner_user()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_folders_are_given_to_the_user_by_name_or_number(settings: Any, tmp_path: Path) -> None:
    nobody_user = pwd.getpwnam("nobody")
    settings.DATA_FOLDER = tmp_path
    for name in ("nobody", str(nobody_user.pw_uid)):
        settings.RUNNER_USER = name
        assert runner_user() == (nobody_user.pw_uid, nobody_user.pw_gid)
    folder = shared_folder("submitted")
    assert folder.name == f"submitted-{nobody_user.pw_uid}"
    assert folder.stat().st_uid == nobody_user.pw_uid
