"""The archives that spark-submit sends along: the SDK and a bundle, for Python to import from."""

import hashlib
import os
import py_compile
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

_PACKAGE = Path(__file__).parents[1]


def sdk_archive(cache: Path, read_from: Path | None = None) -> Path:
    """Return an archive of this package, created once for each state of the
    files and version of Python.

    The archive contains compiled files, for the Python that creates the archive, beside the
    sources, for all other versions: compiling takes longer than all other steps of a driver before
    the run. ``read_from`` is the folder that the archive is read from, if that is another one.
    """
    sources = sorted(_PACKAGE.rglob("*.py"))
    archive = cache / f"slicewise-{_digest(sources)}.zip"
    if not archive.exists():
        with TemporaryDirectory() as scratch:
            compiled = Path(scratch) / "compiled.pyc"
            with _Unfinished(archive) as out:
                for source in sources:
                    name = f"{_PACKAGE.name}/{source.relative_to(_PACKAGE).as_posix()}"
                    out.writestr(_member(name), source.read_bytes())
                    _compile(source, f"{(read_from or cache) / archive.name}/{name}", compiled)
                    out.writestr(_member(f"{name}c"), compiled.read_bytes())
    return archive


def bundle_archive(cache: Path, root: Path, digest: str) -> Path:
    """Return an archive of an unpacked bundle version, created once."""
    archive = cache / f"bundle-{digest[:16]}.zip"
    if not archive.exists():
        with _Unfinished(archive) as out:
            for path in sorted(root.rglob("*")):
                if path.is_file():
                    name = path.relative_to(root).as_posix()
                    out.writestr(_member(name), path.read_bytes())
    return archive


def _member(name: str) -> zipfile.ZipInfo:
    """Return an archive's entry without a time: the same files make the same archive."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return entry


def _compile(source: Path, shown_path: str, target: Path) -> None:
    # Unchecked: times in an archive are rounded, and the archive's name identifies its content.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(
        str(source), str(target), dfile=shown_path, doraise=True, invalidation_mode=mode
    )


def _digest(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        content = source.read_bytes()
        digest.update(f"{source.relative_to(_PACKAGE)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


class _Unfinished:
    """An archive that is being written: several processes may write it at
    once, and it appears whole.
    """

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._path = archive.with_name(f".{archive.name}.{os.getpid()}")

    def __enter__(self) -> zipfile.ZipFile:
        self._archive.parent.mkdir(parents=True, exist_ok=True)
        self._zip = zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED)
        return self._zip

    def __exit__(self, kind: object, *_: object) -> None:
        self._zip.close()
        if kind is None:
            self._path.rename(self._archive)
        else:
            self._path.unlink(missing_ok=True)
