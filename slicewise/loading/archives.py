"""Bundles: folders of definition files, packed by content and loaded into declarations."""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from slicewise.loading.importing import load_bundle, module_name

DEFAULT_LIMIT_BYTES = 50 * 1024 * 1024
UNPACK_LIMIT_FACTOR = 20
"""The unpacked size of an archive is at most this many times the limit of a bundle."""

__all__ = ["BundleError", "archive", "file_digests", "load_bundle", "module_name", "unpack"]


class BundleError(ValueError):
    """A folder cannot be a bundle, or an archive cannot be unpacked."""


def archive(folder: str | Path, *, limit: int = DEFAULT_LIMIT_BYTES) -> tuple[str, bytes]:
    """Pack a folder; return the digest of the content (hex) and a tar.gz of the content alone.

    Leaves out ``__pycache__`` and names that begin with a dot. Raises BundleError for a bundle of
    more than ``limit`` bytes, for links that lead out of the folder, and for entries that are no
    regular files.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise BundleError(f"{folder} is not a folder")
    content = io.BytesIO()
    total = 0
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _files(root):
            data = path.read_bytes()
            total += len(data)
            if total > limit:
                raise BundleError(f"the bundle {folder} is larger than the limit of {limit} bytes")
            member = tarfile.TarInfo(path.relative_to(root).as_posix())
            member.size = len(data)
            member.mode = 0o644
            tar.addfile(member, io.BytesIO(data))
    raw = content.getvalue()
    # The digest is of the uncompressed bytes: compressed bytes differ between versions of zlib.
    return hashlib.sha256(raw).hexdigest(), gzip.compress(raw, mtime=0)


def file_digests(packed: bytes, digest: str) -> dict[str, bytes]:
    """Return the SHA-256 of each file of an archive, by path.

    Raises BundleError for an archive that does not have the digest.
    """
    max_bytes = DEFAULT_LIMIT_BYTES * UNPACK_LIMIT_FACTOR
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            raw = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BundleError(f"the archive of bundle version {digest:.12} is damaged") from error
    if hashlib.sha256(raw).hexdigest() != digest:
        raise BundleError(f"the archive of bundle version {digest:.12} was changed")
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {
            _safe_path(member).as_posix(): hashlib.sha256(_content(tar, member).read()).digest()
            for member in tar
        }


def unpack(packed: bytes, target: str | Path, *, read_only: bool = False) -> None:
    """Unpack an archive into the new folder ``target``, which appears whole or not at all.

    Several processes may unpack the same archive at once. With ``read_only``, files have the mode
    444 and folders 755, independent of the umask. Raises BundleError for an archive with links,
    devices, or paths that lead out of the folder.
    """
    folder = Path(target)
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _extract(packed, scratch)
        if read_only:
            _protect(scratch)
        scratch.chmod(0o755)
        try:
            os.rename(scratch, folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _extract(packed: bytes, folder: Path) -> None:
    bytes_left = DEFAULT_LIMIT_BYTES * UNPACK_LIMIT_FACTOR
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        for member in tar:
            bytes_left -= member.size
            if bytes_left < 0:
                raise BundleError("the archive unpacks to more than a bundle may hold")
            path = folder / _safe_path(member)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(_content(tar, member), file)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    source = tar.extractfile(member)
    if source is None:
        raise BundleError(f"the archive has no content for {member.name!r}")
    return source


def _protect(folder: Path) -> None:
    for path, _, names in os.walk(folder):
        Path(path).chmod(0o755)
        for name in names:
            Path(path, name).chmod(0o444)


def _safe_path(member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    if not member.isreg():
        raise BundleError(f"{member.name!r} in the archive is not a regular file")
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BundleError(f"{member.name!r} in the archive leads out of the bundle")
    return path


def _files(root: Path) -> Iterator[Path]:
    """Yield all files of a bundle, in an order that depends on the names only."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if _is_packed(name))
        for name in sorted(filter(_is_packed, names)):
            path = Path(folder, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise BundleError(
                    f"{path.relative_to(root)} is a link that leads out of the bundle"
                )
            if not path.is_file():
                raise BundleError(f"{path.relative_to(root)} is not a regular file")
            yield path


def _is_packed(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"
