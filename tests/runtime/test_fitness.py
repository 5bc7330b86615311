"""File systems that cannot do what publishing takes are told in one sentence, before any work.

That they refuse is played at the call of the system: tests cannot mount one everywhere.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slicewise.io import Place, storage_at
from slicewise.storage import UnfitFileSystemError, exchange, fitness
from tests.runtime.test_write_modes import Lake

WORKS = r"ext4, XFS, Btrfs or tmpfs of one host, or at an s3:, gcs: or postgres: URI$"


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "_fit", set())


def refusing(number: int) -> Callable[..., Any]:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def without_exchange(monkeypatch: pytest.MonkeyPatch, number: int = errno.EINVAL) -> None:
    """As FUSE and NFS have it: what is not there is said first, then that flags are unknown."""

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
    place = storage_at(Place(uri=f"file:{tmp_path}/lake/sales"))
    with pytest.raises(UnfitFileSystemError, match=WORKS) as refused:
        place.refuse_place()
    assert str(refused.value).startswith(f"the file system of {tmp_path} cannot exchange two")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EBADF, errno.EOPNOTSUPP])
def test_one_that_locks_no_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(fcntl, "flock", refusing(number))
    with pytest.raises(UnfitFileSystemError, match="cannot lock a folder") as refused:
        storage_at(Place(uri=str(tmp_path))).refuse_place()
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_one_that_can_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = storage_at(Place(uri=f"file:{tmp_path}/sales"))
    place.refuse_place()
    assert list(tmp_path.iterdir()) == []
    without_exchange(monkeypatch)
    place.refuse_place()


def test_a_place_that_cannot_be_tried_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", refusing(errno.EACCES))
    storage_at(Place(uri=str(tmp_path))).refuse_place()


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
