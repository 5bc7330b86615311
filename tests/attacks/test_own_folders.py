"""The runners' user puts links and folders where the worker is about to make a folder."""

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from assets_app.execution.data import runner_user
from slicewise.process.own_folders import ForeignFolderError, ensure_folder

NOBODY = pwd.getpwnam("nobody")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def data(settings: Any, tmp_path: Path) -> Path:
    """Make a data folder that once belonged to the runners' user."""
    folder = tmp_path / "data"
    folder.mkdir()
    settings.DATA_FOLDER, settings.RUNNER_USER = folder, "nobody"
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Make a folder of root, with a file in the folder."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "module.py").write_text("trusted = True\n")
    return folder


@root_only
@pytest.mark.parametrize(
    ("make", "name", "link"),
    [
        (runner_user.own_folder, "bundles", "bundles"),
        (runner_user.own_folder, "archives", "archives"),
        (runner_user.shared_folder, "submitted", f"submitted-{NOBODY.pw_uid}"),
    ],
)
def test_a_link_in_the_place_of_a_folder_gives_nothing_away(
    data: Path, victim: Path, make: Callable[[str], Path], name: str, link: str
) -> None:
    (data / link).symlink_to(victim)
    with pytest.raises(ImproperlyConfigured, match="is a link or a file"):
        make(name)
    assert victim.stat().st_uid == 0
    assert (victim / "module.py").stat().st_uid == 0


@root_only
def test_a_link_that_appears_at_the_last_moment_gives_nothing_away(
    data: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test swaps the folder for a link in the moment in which the worker makes the folder:
    earlier than any process that watches for the folder could.
    """
    make = os.mkdir

    def replace(name: str, *args: Any, **more: Any) -> None:
        make(name, *args, **more)
        if name.startswith("submitted"):
            (data / name).rename(data / "aside")
            (data / name).symlink_to(victim)

    monkeypatch.setattr("os.mkdir", replace)
    with pytest.raises(ImproperlyConfigured, match="is a link or a file"):
        runner_user.shared_folder("submitted")
    assert victim.stat().st_uid == 0


@root_only
def test_a_folder_that_the_runners_user_made_is_not_taken_for_the_worker_s(data: Path) -> None:
    (data / "archives").mkdir()
    os.chown(data / "archives", NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises(ImproperlyConfigured, match=f"belongs to the user {NOBODY.pw_uid}"):
        runner_user.own_folder("archives")


@root_only
def test_the_data_folder_is_taken_back_from_the_runners_user(data: Path) -> None:
    runner_user.own_folder("archives")
    assert (data.stat().st_uid, data.stat().st_mode & 0o777) == (0, 0o711)
    link = ["ln", "-s", "/etc", str(data / "bundles")]
    result = subprocess.run(link, user="nobody", capture_output=True, check=False)
    assert result.returncode != 0
    assert not (data / "bundles").exists()


@root_only
def test_a_data_folder_of_a_stranger_is_refused(data: Path) -> None:
    os.chown(data, 12345, 12345)
    with pytest.raises(ImproperlyConfigured, match="belongs to the user 12345"):
        runner_user.own_folder("archives")
    assert not list(data.iterdir())


@root_only
def test_a_folder_that_the_runners_user_may_write_belongs_to_that_user_alone(data: Path) -> None:
    shared = runner_user.shared_folder("submitted")
    facts = shared.stat()
    assert (facts.st_uid, facts.st_mode & 0o777) == (NOBODY.pw_uid, 0o700)
    assert runner_user.shared_folder("submitted") == shared


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archives").write_text("")
    with pytest.raises(ForeignFolderError, match="is a link or a file"):
        ensure_folder(tmp_path / "archives")


def test_no_process_of_the_runners_user_owns_the_data_folder_of_the_image() -> None:
    lines = Path(__file__).parents[2].joinpath("Dockerfile").read_text().splitlines()
    (install_line,) = [line for line in lines if "install" in line and "/data" in line]
    assert "-m 0711" in install_line
    assert "-o " not in install_line
