"""Hands a bundle to the loader process, and reads what it declares.

No server process imports user code.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from slicewise import bundles

# What a definition file may need to be imported, and nothing that the server keeps to itself.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
_MEMORY_LIMIT_BYTES = 4 * 1024**3
_FILE_LIMIT_BYTES = 64 * 1024**2
_REPORT_LIMIT_BYTES = 256 * 1024**2
_NOBODY = 65534


class BundleNotLoaded(Exception):
    """The bundle as a whole could not be read or loaded; the sentence says why."""


@dataclass(frozen=True, slots=True)
class LoadedBundle:
    """A snapshot of a folder and what its files declare."""

    digest: str
    archive: bytes
    declared: dict[str, Any]


def user_code_environment() -> dict[str, str]:
    """The environment that user code gets: an allow-list, with the names that the settings add."""
    names = (*PASSED_ON, *settings.RUNNER_ENV)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


def snapshot(folder: Path) -> tuple[str, bytes]:
    """Digest and archive of the folder; BundleNotLoaded if it is not there or too large."""
    try:
        return bundles.archive(folder, limit=settings.BUNDLE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise BundleNotLoaded(str(error)) from error


def load(digest: str, archive: bytes) -> LoadedBundle:
    """Unpack the snapshot and have the loader import it, under limits of time and memory.

    Raises BundleNotLoaded when the loader says nothing useful: it ran out of time or memory, or
    the code ended the process.
    """
    with tempfile.TemporaryDirectory(prefix="slicewise-load-") as scratch:
        folder = Path(scratch) / "bundle"
        bundles.unpack(archive, folder)
        report = Path(scratch) / "report.json"
        report.touch(mode=0o600)
        demotion = _demotion()
        if demotion is not None:
            _open_to_all(Path(scratch))
        _run_loader(folder, report, user_code_environment(), demotion)
        return LoadedBundle(digest, archive, _read(report))


def _run_loader(
    folder: Path, report: Path, environment: Mapping[str, str], uid: int | None
) -> None:
    with report.open("wb") as sink:
        command = [sys.executable, "-m", "slicewise.loader", str(folder)]
        try:
            done = subprocess.run(
                [*command, "--report-fd", str(sink.fileno())],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(sink.fileno(),),
                timeout=settings.LOADER_TIMEOUT_SECONDS,
                start_new_session=True,
                preexec_fn=_limits(),
                user=uid,
                group=uid,
                extra_groups=[] if uid is not None else None,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            limit = settings.LOADER_TIMEOUT_SECONDS
            raise BundleNotLoaded(
                f"Its files were not loaded within {limit} s (setting LOADER_TIMEOUT_SECONDS)."
            ) from error
    if done.returncode != 0:
        said = done.stderr[-2000:].decode(errors="replace").strip()
        raise BundleNotLoaded(f"The loader ended with status {done.returncode}. {said}".strip())


def _read(report: Path) -> dict[str, Any]:
    if report.stat().st_size > _REPORT_LIMIT_BYTES:
        raise BundleNotLoaded("What it declares is too large.")
    try:
        declared: dict[str, Any] = json.loads(report.read_bytes())
    except ValueError as error:
        raise BundleNotLoaded(
            "The loader ended before it had reported: os._exit or a crash?"
        ) from error
    return declared


def _limits() -> Callable[[], None]:
    def set_limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_LIMIT_BYTES, _FILE_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return set_limits


def _demotion() -> int | None:
    """The user to load as: as root another one, since limits of a process do not bind root.

    None for ordinary users, and where the interpreter lies in a folder that is root's alone.
    """
    if os.geteuid() != 0:
        return None
    needed = (sys.executable, os.path.realpath(sys.executable), os.__file__, bundles.__file__)
    readable = all(
        parent.stat().st_mode & 0o001 for path in needed for parent in Path(path).absolute().parents
    )
    return _NOBODY if readable else None


def _open_to_all(scratch: Path) -> None:
    for folder, _, files in os.walk(scratch):
        Path(folder).chmod(0o755)
        for name in files:
            (Path(folder) / name).chmod(0o644)
