"""Code leaves more nested folders than Python's own removal can remove."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assets_app.execution.attempt import engines
from assets_app.execution.data.runner_user import shared_folder
from slicewise import storage
from slicewise.loading.archives import archive
from slicewise.process.removal import remove_folder, remove_paths
from slicewise.runner.loader_process import LoaderOptions, load_archive
from tests.attacks.users import open_folder

LEVELS = 1500
NOBODY = pwd.getpwnam("nobody")
NESTING_FILE = f"""
import os, tempfile
place = tempfile.gettempdir()
for _ in range({LEVELS}):
    place += "/d"
    os.mkdir(place)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose deep contents hinder no other test if the test fails."""
    with open_folder() as path:
        yield path
        subprocess.run(["/bin/rm", "-rf", *map(str, path.iterdir())], check=True)


@pytest.fixture
def data(folder: Path, settings: Any) -> Path:
    """Return the folder as a data folder; runs have the user of the tests."""
    settings.DATA_FOLDER, settings.RUNNER_USER, settings.RUNNER_USERS = folder, "", ""
    return folder


def nest(folder: Path, user: int | None = None) -> None:
    """Create nested folders below a new folder, as a user."""
    subprocess.run(["/bin/mkdir", "-p", f"{folder}{'/d' * LEVELS}"], check=True, user=user)


def test_a_folder_is_removed_however_deep_it_is(folder: Path) -> None:
    nest(folder / "deep")
    remove_folder(folder / "deep")
    assert list(folder.iterdir()) == []


def test_a_link_in_the_place_of_a_folder_is_not_followed(folder: Path) -> None:
    kept, link = folder / "kept", folder / "link"
    kept.mkdir()
    (kept / "file").touch()
    link.symlink_to(kept)
    remove_folder(link)
    assert link.is_symlink()
    assert remove_paths([str(link)]) == []
    assert (kept / "file").exists()


@pytest.mark.django_db
def test_the_remains_of_an_application_keep_no_worker_from_its_start(data: Path) -> None:
    nest(shared_folder("submitted") / "lost")
    engines.tidy_host()
    assert list(shared_folder("submitted").iterdir()) == []


@pytest.mark.django_db
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of another user")
def test_the_remains_are_removed_with_the_rights_of_runs(data: Path, settings: Any) -> None:
    settings.RUNNER_USER = "nobody"
    submitted = shared_folder("submitted")
    nest(submitted / "lost", NOBODY.pw_uid)
    os.chmod(submitted / "lost" / "d", 0)
    (submitted / "of root").mkdir()
    (submitted / "of root" / "file").touch()
    engines.tidy_host()
    # No run writes files of root: nothing of root is removed by the way.
    assert [path.name for path in submitted.iterdir()] == ["of root"]
    assert (submitted / "of root" / "file").exists()


def test_deep_staged_folders_are_discarded(folder: Path) -> None:
    asset = folder / "asset"
    asset.mkdir()
    staging = storage.staging_path(asset, 1, "1-a", 1, partitioned=True)
    staging.parent.mkdir(parents=True, exist_ok=True)
    nest(staging)
    storage.discard(str(asset), run_id=1, attempt="1-a")
    assert not [path for path in staging.parent.iterdir() if path.name != asset.name]


def test_a_load_ends_as_any_other_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, scratch = folder / "bundle", folder / "scratch"
    bundle.mkdir()
    scratch.mkdir()
    (bundle / "a.py").write_text(NESTING_FILE)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("slicewise.runner.loader_users.has_loader_users", lambda: False)
    packed = archive(bundle, limit=10**6)[1]
    report = load_archive(packed, LoaderOptions(env={"PATH": os.environ["PATH"]}))
    assert [file["error"] for file in report.declared["files"]] == [None]
    assert list(scratch.iterdir()) == []
