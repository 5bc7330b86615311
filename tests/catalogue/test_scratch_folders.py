"""The folder into which a bundle is unpacked for the loader, and what the system may refuse."""

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from assets_app.catalogue.loading import BundleNotLoaded, load, snapshot
from slicewise.runner import loader_process, loader_users
from slicewise.runner.loader_process import LoaderOptions, NotLoadedError, load_archive
from tests.catalogue.conftest import Bundle

LOOK = """
import os, tempfile
folder = os.getcwd()
above = os.path.dirname(folder)
modes = [f"{os.stat(path).st_mode & 0o777:o}" for path in (folder, __file__, f"{above}/output")]
raise ValueError(f"{modes} {os.path.dirname(tempfile.gettempdir()) == above}")
"""


def test_others_read_no_file_of_a_bundle_and_the_loader_has_its_own_tmpdir(bundle: Bundle) -> None:
    (file,) = load(*snapshot(bundle(look=LOOK))).declared["files"]
    assert "['700', '600', '600'] True" in file["error"]["message"]


def test_a_refusal_of_the_system_is_told(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = snapshot(bundle(a=""))
    loader_users.has_loader_users()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BundleNotLoaded, match=r"Its files were not loaded: .*unavailable"):
        load(*packed)


def test_a_damaged_archive_is_told() -> None:
    with pytest.raises(NotLoadedError, match="Its files were not loaded"):
        load_archive(b"no archive", LoaderOptions(env={}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root loads as another user")
def test_a_closed_tmpdir_is_left_for_an_open_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed_path(_: object, needs: list[str]) -> str:
        return "" if needs == ["x:/tmp"] else needs[0]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(loader_process, "first_closed_path", closed_path)
    assert loader_process._scratch_parent((65_520, 65_533)) == Path("/tmp")
    monkeypatch.setattr(loader_process, "_PLACES", ())
    with pytest.raises(NotLoadedError, match="Set TMPDIR to a folder that every user can reach"):
        loader_process._scratch_parent((65_520, 65_533))
