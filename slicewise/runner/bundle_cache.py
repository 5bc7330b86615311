"""Bundle versions as runners import them: unpacked by the worker, and checked before each use.

If runners have another user than the worker, runners can read these files and change none. If
runners have the worker's user, a run may change files that other runs import: a folder whose
fingerprint has changed is compared with the archive, and unpacked anew if it differs. The
fingerprint contains each file's time of change, which only root can set.
"""

import fcntl
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from slicewise.loading.archives import BundleError, file_digests, unpack
from slicewise.process.removal import remove_folder
from slicewise.runner.shipping import bundle_archive, sdk_archive

log = logging.getLogger(__name__)

_SDK = "sdk"


class BundleCache:
    """Unpacked bundle versions of one host, shared by several workers; safe to
    use from several threads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._seen: dict[str, bytes] = {}
        """By digest: the fingerprint of an unpacked version when it was equal to the archive."""
        self._shipped: dict[str, tuple[Path, bytes]] = {}

    def root(self, bundle: Mapping[str, str]) -> Path:
        """Return the folder of a bundle version, with the content of its archive and nothing else.

        Raises BundleError for an archive whose digest is wrong; the archive is removed, so that the
        next attempt gets another.
        """
        digest = str(bundle["digest"])
        folder = self._folder / digest
        if not self._is_as_seen(digest, folder):
            with self._alone():
                self._renew(digest, folder, Path(bundle["archive"]))
        return folder

    def shipped(self, bundle: Mapping[str, str]) -> list[Path]:
        """Return the archives for an application: the SDK, and the bundle version."""
        digest, root = str(bundle["digest"]), self.root(bundle)
        return [
            self._kept(_SDK, sdk_archive),
            self._kept(digest, lambda folder, _: bundle_archive(folder, root, digest)),
        ]

    def _is_as_seen(self, digest: str, folder: Path) -> bool:
        return digest in self._seen and _fingerprint(folder) == self._seen[digest]

    def _renew(self, digest: str, folder: Path, archive: Path) -> None:
        if self._is_as_seen(digest, folder):
            return  # another thread's work
        packed = archive.read_bytes()
        try:
            files = file_digests(packed, digest)
        except BundleError:
            archive.unlink(missing_ok=True)
            raise
        fingerprint = _fingerprint(folder)
        if fingerprint is None or not _has_exactly(folder, files):
            if fingerprint is not None:
                log.warning("bundle was changed, unpacked anew", extra={"folder": str(folder)})
            self._unpack(packed, folder)
            fingerprint = _fingerprint(folder)
            if not _has_exactly(folder, files):
                raise BundleError(f"another program changes {folder}, where the bundle is unpacked")
        if fingerprint is not None:
            self._seen[digest] = fingerprint

    def _unpack(self, packed: bytes, folder: Path) -> None:
        with self._scratch() as scratch:
            unpack(packed, scratch / "new", read_only=True)
            if os.path.lexists(folder):
                # Active runs find their files in this folder except at this moment.
                folder.rename(scratch / "old")
            (scratch / "new").rename(folder)

    def _kept(self, name: str, make: Callable[[Path, Path], Path]) -> Path:
        """Return an archive that this process has written, or has found equal to
        the one that it would write.
        """
        earlier = self._shipped.get(name)
        if earlier and _file_fingerprint(earlier[0]) == earlier[1]:
            return earlier[0]
        shipped = self._folder / "shipped"
        with self._alone(), self._scratch() as scratch:
            shipped.mkdir(exist_ok=True)
            shipped.chmod(0o755)  # under any umask
            new_archive = make(scratch, shipped)
            archive = shipped / new_archive.name
            if not archive.is_file() or archive.read_bytes() != new_archive.read_bytes():
                new_archive.chmod(0o444)
                new_archive.rename(archive)
            self._shipped[name] = archive, _file_fingerprint(archive)
        return archive

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock on the folder: no other thread or process changes the folder meanwhile."""
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(self._folder / ".lock", flags, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        try:
            yield folder
        finally:
            remove_folder(folder)


def _entries(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the folder and everything below it, by relative path; no link is followed."""
    yield "", os.lstat(folder)
    above = [""]
    while above:
        prefix = above.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                yield name, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    above.append(f"{name}/")


def _fingerprint(folder: Path) -> bytes | None:
    """Return a folder's fingerprint, which needs no file's content: 3 ms for 1,000 files, where the
    content takes 13. None if the folder does not exist.
    """
    try:
        facts = sorted((name, *_facts(status)) for name, status in _entries(folder))
    except OSError:
        return None if not os.path.lexists(folder) else b""
    return hashlib.sha256(repr(facts).encode()).digest()


def _file_fingerprint(file: Path) -> bytes:
    try:
        return repr(_facts(os.lstat(file))).encode()
    except OSError:
        return b""


def _facts(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns


def _has_exactly(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether the folder contains exactly these files, by the digests of their content."""
    missing = dict(files)
    folders = {parent.as_posix() for name in files for parent in Path(name).parents} | {"", "."}
    try:
        for name, status in _entries(folder):
            if stat.S_ISDIR(status.st_mode):
                if name not in folders:
                    return False
            elif not stat.S_ISREG(status.st_mode) or missing.pop(name, None) != _digest(
                folder / name
            ):
                return False
    except OSError:
        return False
    return not missing


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()
