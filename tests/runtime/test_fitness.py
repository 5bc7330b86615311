"""File systems that cannot publish are refused in one sentence, before any work.

The tests play the refusal at the call of the system: tests cannot mount such a file system
everywhere.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slicewise.io import StorageLocation, storage_at
from slicewise.storage import UnfitFileSystemError, UnfitLocationError, exchange, fitness
from slicewise.storage.layout import TRIAL_PREFIX
from tests.runtime.folder_asset import Lake

WORKS = r"ext4, XFS, Btrfs or tmpfs of one host, or at an s3:, gcs: or postgres: URI$"


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "_fit", set())


def refusing(number: int) -> Callable[..., Any]:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def without_exchange(monkeypatch: pytest.MonkeyPatch, number: int = errno.EINVAL) -> None:
    """Refuse an exchange as FUSE and NFS do: missing files first, then unknown flags."""

    def rename(source: Path, target: Path, flag: int) -> None:
        if flag == exchange._EXCHANGE and not os.path.lexists(target):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(exchange, "_renameat2", rename)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_one_that_cannot_exchange_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    without_exchange(monkeypatch, number)
    storage = storage_at(StorageLocation(uri=f"file:{tmp_path}/lake/sales"))
    with pytest.raises(UnfitFileSystemError, match=WORKS) as refused:
        storage.refuse_unfit_location()
    assert str(refused.value).startswith(f"the file system of {tmp_path} cannot exchange two")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EBADF, errno.EOPNOTSUPP])
def test_one_that_locks_no_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(fcntl, "flock", refusing(number))
    with pytest.raises(UnfitFileSystemError, match="cannot lock a folder") as refused:
        storage_at(StorageLocation(uri=str(tmp_path))).refuse_unfit_location()
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_one_that_can_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_at(StorageLocation(uri=f"file:{tmp_path}/sales"))
    storage.refuse_unfit_location()
    assert list(tmp_path.iterdir()) == []
    without_exchange(monkeypatch)
    storage.refuse_unfit_location()


def test_a_place_that_cannot_be_tried_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", refusing(errno.EACCES))
    storage_at(StorageLocation(uri=str(tmp_path))).refuse_unfit_location()


def test_a_trial_that_was_cut_off_keeps_nothing_from_its_place(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a", "replace", ["."])
    lake.write(1, "first")
    trial_folder = tmp_path / "a" / f"{TRIAL_PREFIX}x"
    (trial_folder / "1").mkdir(parents=True)
    lake.write(2, "second")
    assert lake.content() == {".": ["second"]}
    assert not trial_folder.exists()


def test_a_trial_lies_beside_the_data_and_removes_those_that_were_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = list[Path]()

    def note(source: Path, target: Path) -> None:
        homes.append(source.parent.parent)

    monkeypatch.setattr(fitness, "put_in_place", note)
    (tmp_path / "a").mkdir()
    trial_folder = tmp_path / f"{TRIAL_PREFIX}x"
    trial_folder.mkdir()
    os.utime(trial_folder, (0, 0))
    storage_at(StorageLocation(uri=str(tmp_path / "a"))).refuse_unfit_location()
    assert homes == [tmp_path]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("existing", "denied", "message"),
    [
        ("lake/a", "lake/a", "may not write in .*/lake/a; chown -R .*/lake/a gives it"),
        ("lake", "lake", "may not write in .*/lake; create .*/lake/a and give it"),
        ("lake/a", "lake", "may not read .*/lake, which is locked"),
    ],
)
def test_a_place_for_which_rights_lack_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: str, denied: str, message: str
) -> None:
    (tmp_path / existing).mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / denied)
    with pytest.raises(UnfitLocationError, match=message):
        storage_at(StorageLocation(uri=str(tmp_path / "lake/a"))).refuse_unfit_location()


def test_a_place_that_is_a_link_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").symlink_to(tmp_path)
    if os.geteuid() == 0:
        os.lchown(tmp_path / "a", 4711, 4711)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(UnfitLocationError, match="is a link of user"):
        storage_at(StorageLocation(uri=str(tmp_path / "a"))).refuse_unfit_location()


def test_a_publication_says_the_same_where_nobody_asked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "a", "replace")
    without_exchange(monkeypatch)
    lake.write(1, "first")  # nothing is exchanged for it
    staging = lake.stage(2, "second")
    with pytest.raises(UnfitFileSystemError, match=WORKS):
        lake.publish(staging, 2)
    assert lake.content() == {"day=1": ["first"], "day=2": ["first"]}


def test_forks_know_the_trials_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitness, "_fit", set())
    fitness.share_trials_with_forks()
    trials = tmp_path / "trials"

    def note(_: Path) -> None:
        with trials.open("a") as file:
            file.write("x")

    monkeypatch.setattr(fitness, "_try", note)
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                fitness.refuse_unfit(tmp_path / "asset")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    assert trials.read_text() == "x"
