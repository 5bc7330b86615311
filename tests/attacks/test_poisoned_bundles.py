"""A run rewrites the modules that other runs import: the next run imports the frozen modules."""

import gzip
import logging
import textwrap
from pathlib import Path

import pytest

from slicewise.loading.archives import archive
from slicewise.runner.bundle_cache import BundleCache
from slicewise.runner.parent_client import WarmParentError
from tests.runtime.conftest import runs, warm_parent
from tests.runtime.runs import Runs

__all__ = ["runs", "warm_parent"]

INNOCENT = """
    import helper

    @asset()
    def innocent():
        print("it says", helper.SAID, "json" in sys.modules and sys.modules["json"].__file__)
"""
POISON = """
    from pathlib import Path

    @asset()
    def poison():
        ROOT = Path(__file__).parent
"""
# Each changes the folder in another way; all of them have the user of the worker here.
POISONS = {
    "another content": """
        os.chmod(ROOT / "helper.py", 0o644)
        (ROOT / "helper.py").write_text("SAID = 'POISONED'")
    """,
    "as many bytes, and the old time": """
        was = os.stat(ROOT / "helper.py")
        os.chmod(ROOT / "helper.py", 0o644)
        with open(ROOT / "helper.py", "r+") as file:
            file.write("SAID = 'POISON'")
        os.utime(ROOT / "helper.py", ns=(was.st_atime_ns, was.st_mtime_ns))
    """,
    "another file in its place": """
        (ROOT / "helper.py").unlink()
        (ROOT / "helper.py").write_text("SAID = 'POISONED'")
    """,
    "a link in its place": """
        (ROOT / "helper.py").unlink()
        (ROOT / "aside.py").write_text("SAID = 'POISONED'")
        (ROOT / "helper.py").symlink_to(ROOT / "aside.py")
    """,
    "a module before another of its name": """
        (ROOT / "numbers.py").write_text("print('POISONED')")
    """,
    "compiled files": """
        (ROOT / "__pycache__").mkdir()
        (ROOT / "__pycache__" / "helper.cpython-311.pyc").write_bytes(b"POISONED")
    """,
    "a folder of one's own in its place": """
        import shutil
        shutil.copytree(ROOT, ROOT.with_name("aside"))
        (ROOT.with_name("aside") / "helper.py").chmod(0o644)
        (ROOT.with_name("aside") / "helper.py").write_text("SAID = 'POISONED'")
        ROOT.rename(ROOT.with_name("gone"))
        ROOT.symlink_to(ROOT.with_name("aside"))
    """,
    "more nested folders than Python removes": """
        place = str(ROOT)
        for _ in range(1500):
            place += "/d"
            os.mkdir(place)
    """,
    "nothing at all": """
        import shutil
        shutil.rmtree(ROOT)
    """,
}


@pytest.fixture
def bundle(runs: Runs) -> Runs:
    """Write a bundle with an innocent asset, and a module that the asset imports."""
    runs.bundle.mkdir()
    (runs.bundle / "helper.py").write_text("SAID = 'frozen'")
    return runs


def root(runs: Runs) -> Path:
    """Return the folder of the unpacked bundle."""
    cache: BundleCache = runs.parent._bundles
    return cache.root(runs.request("innocent")["bundle"])


def test_files_of_an_unpacked_bundle_cannot_be_written(bundle: Runs) -> None:
    bundle.define(INNOCENT)
    assert "it says frozen" in bundle.run("innocent").log
    modes = {path.name: path.stat().st_mode & 0o777 for path in root(bundle).rglob("*")}
    assert modes == {"assets.py": 0o444, "helper.py": 0o444}


@pytest.mark.parametrize("how", POISONS)
def test_a_bundle_that_a_run_has_changed_is_unpacked_again(
    bundle: Runs, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = textwrap.indent(textwrap.dedent(POISONS[how]), " " * 8)
    bundle.define(INNOCENT + POISON + body + '        print("poisoned it")\n')
    before = {path.name: path.read_bytes() for path in root(bundle).iterdir()}
    assert "poisoned it" in bundle.run("poison").log
    with caplog.at_level(logging.WARNING, logger="slicewise.runner.bundle_cache"):
        log = bundle.run("innocent").log
    assert "it says frozen" in log
    assert "POISONED" not in log
    assert not root(bundle).is_symlink()
    assert {path.name: path.read_bytes() for path in root(bundle).iterdir()} == before
    assert ("bundle was changed" in caplog.text) == (how != "nothing at all")


def test_another_worker_takes_what_it_finds_only_as_it_was_packed(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/helper.py").write_text("SAID = 'frozen'")
    digest, packed = archive(tmp_path / "bundle")
    (tmp_path / "packed").write_bytes(packed)
    facts = {"digest": digest, "archive": str(tmp_path / "packed")}
    unpacked = BundleCache(tmp_path / "cache").root(facts)
    inode = unpacked.stat().st_ino
    assert BundleCache(tmp_path / "cache").root(facts).stat().st_ino == inode
    (unpacked / "helper.py").chmod(0o644)
    (unpacked / "helper.py").write_text("SAID = 'POISON'")
    BundleCache(tmp_path / "cache").root(facts)
    assert (unpacked / "helper.py").read_text() == "SAID = 'frozen'"


@pytest.mark.parametrize("poison", [gzip.compress(b"POISONED", mtime=0), b"POISONED"])
def test_an_archive_that_was_changed_is_not_unpacked(bundle: Runs, poison: bytes) -> None:
    bundle.define(INNOCENT)
    cached_archive = Path(bundle.request("innocent")["bundle"]["archive"])
    cached_archive.write_bytes(poison)
    with pytest.raises(WarmParentError, match=r"was changed|is damaged"):
        bundle.run("innocent")
    assert not cached_archive.exists()  # the next attempt gets another from the database


def test_archives_for_applications_are_as_the_worker_made_them(bundle: Runs) -> None:
    bundle.define(INNOCENT)
    facts, cache = bundle.request("innocent")["bundle"], bundle.parent._bundles
    shipped = cache.shipped(facts)
    before = [path.read_bytes() for path in shipped]
    assert [path.stat().st_mode & 0o777 for path in shipped] == [0o444, 0o444]
    for path in shipped:
        path.chmod(0o644)
        path.write_bytes(b"POISONED")
    assert [path.read_bytes() for path in cache.shipped(facts)] == before
    shipped_again = BundleCache(shipped[0].parents[1]).shipped(facts)
    assert [path.read_bytes() for path in shipped_again] == before
    assert shipped_again == shipped
