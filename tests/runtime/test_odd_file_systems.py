"""A real file system that cannot publish: bindfs, whose mounts cannot exchange two folders."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.io import StorageLocation, storage_at
from slicewise.storage import UnfitFileSystemError, exchange, fitness

_SENTENCE = (
    "the file system of {folder} cannot exchange two folders in one step, which publishing needs:"
    " keep the asset on ext4, XFS, Btrfs or tmpfs of one host, or at an s3:, gcs: or postgres: URI"
)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a mount of bindfs, for this user alone."""
    bindfs, fusermount = shutil.which("bindfs"), shutil.which("fusermount")
    if bindfs is None or fusermount is None:
        pytest.skip("bindfs is not installed: apt-get install bindfs")
    source, folder = tmp_path / "source", tmp_path / "mounted"
    source.mkdir()
    folder.mkdir()
    command = [bindfs, "--no-allow-other", str(source), str(folder)]
    mount = subprocess.run(command, capture_output=True, text=True, check=False)
    if mount.returncode:
        pytest.skip(f"bindfs cannot mount here, where /dev/fuse is missing, say: {mount.stderr}")
    try:
        yield folder
    finally:
        subprocess.run([fusermount, "-u", str(folder)], check=True)


def test_a_real_file_system_that_cannot_exchange_is_refused_in_one_sentence(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitness, "_fit", set())
    with pytest.raises(UnfitFileSystemError) as refused:
        storage_at(StorageLocation(uri=f"file:{mounted}/lake/sales")).refuse_unfit_location()
    assert str(refused.value) == _SENTENCE.format(folder=mounted)
    assert list(mounted.iterdir()) == []


def test_a_publication_there_leaves_old_and_new_data_as_they_are(mounted: Path) -> None:
    for name in ("old", "new"):
        (mounted / name).mkdir()
        (mounted / name / "rows").write_text(name)
    with pytest.raises(UnfitFileSystemError):
        exchange.put_in_place(mounted / "new", mounted / "old")
    assert {path.parent.name: path.read_text() for path in mounted.glob("*/rows")} == {
        "old": "old",
        "new": "new",
    }
