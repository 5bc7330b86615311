"""The call of the loader process, which imports the files of a bundle and reports declarations.

No server process imports user code.
"""

import json
import logging
import os
import resource
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings

from assets_app.catalogue.texts import storable, storable_json
from slicewise.loading import archives
from slicewise.partitions import Limits
from slicewise.runner.processes import die_with_parent, kill_group

log = logging.getLogger(__name__)

# Variables that the import of a definition file may need, and none that the server keeps to itself.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
_MEMORY_LIMIT_BYTES = 4 * 1024**3
_FILE_LIMIT_BYTES = 64 * 1024**2
_REPORT_LIMIT_BYTES = 256 * 1024**2
_ERROR_TAIL_BYTES = 2000
# Not `nobody`: runs may have that user, and could end or change the loader of another bundle.
_LOADER_USER = 65_533


class BundleNotLoaded(Exception):
    """The bundle as a whole could not be read or loaded; the message says why."""


@dataclass(frozen=True, slots=True)
class LoadedBundle:
    """A snapshot of a folder, and the declarations of its files."""

    digest: str
    archive: bytes
    declared: dict[str, Any]


def user_code_environment() -> dict[str, str]:
    """Return the environment of user code: an allow-list, with the names that the settings add."""
    names = (*PASSED_ON, *settings.RUNNER_ENV)
    variables = {name: os.environ[name] for name in names if name in os.environ}
    return {**variables, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


def snapshot(folder: Path) -> tuple[str, bytes]:
    """Return digest and archive of the folder; raise BundleNotLoaded if it is missing or too
    large.
    """
    try:
        return archives.archive(folder, limit=settings.BUNDLE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise BundleNotLoaded(str(error)) from error


def load(digest: str, archive: bytes) -> LoadedBundle:
    """Unpack the snapshot and have the loader import the files, under limits of time and memory.

    Raise BundleNotLoaded when the loader gives no usable report: time or memory ran out, or the
    code ended the process.
    """
    with tempfile.TemporaryDirectory(prefix="slicewise-load-") as scratch:
        folder = Path(scratch) / "bundle"
        archives.unpack(archive, folder)
        report = Path(scratch) / "report.json"
        report.touch(mode=0o600)
        uid = _loader_user()
        if uid is not None:
            _open_to_all(Path(scratch))
        _run_loader(folder, report, user_code_environment(), uid)
        return LoadedBundle(digest, archive, _read(report))


def _run_loader(
    folder: Path, report: Path, environment: Mapping[str, str], uid: int | None
) -> None:
    # The errors of the loader go to a file, which the size limit of the process bounds: a pipe
    # would fill the memory of the server, and be read for as long as any process lives that the
    # files have started.
    with report.open("wb") as sink, report.with_name("stderr").open("wb+") as error_file:
        command = [sys.executable, "-m", "slicewise.loading.loader", str(folder)]
        process = subprocess.Popen(
            [*command, "--report-fd", str(sink.fileno()), *_limit_arguments()],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=error_file,
            pass_fds=(sink.fileno(),),
            start_new_session=True,
            preexec_fn=_limits(),
            user=uid,
            group=uid,
            extra_groups=[] if uid is not None else None,
        )
        status = _wait_for(process)
        if status is None:
            limit = settings.LOADER_TIMEOUT_SECONDS
            raise BundleNotLoaded(
                f"Its files were not loaded within {limit} s (setting LOADER_TIMEOUT_SECONDS)."
            )
        if status != 0:
            raise BundleNotLoaded(
                f"The loader ended with status {status}. {_error_tail(error_file)}".strip()
            )


def _limit_arguments() -> list[str]:
    """Return this server's limits on definitions as options of the loader."""
    return [
        f"--{name.replace('_', '-')}={getattr(settings, name.upper())}" for name in Limits._fields
    ]


def _wait_for(process: "subprocess.Popen[bytes]") -> int | None:
    """Return the status of the loader once it has ended, None if the time ran out.

    Processes that the files have started in the process group of the loader end with it.
    """
    watch = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(watch, select.POLLIN)
        in_time = end.poll(settings.LOADER_TIMEOUT_SECONDS * 1000)
    finally:
        os.close(watch)
        # Killed before the wait: until then the number of the group cannot belong to another
        # process.
        kill_group(process.pid)
        status = process.wait()
    return status if in_time else None


def _error_tail(error_file: BinaryIO) -> str:
    size = error_file.seek(0, os.SEEK_END)
    error_file.seek(max(size - _ERROR_TAIL_BYTES, 0))
    return storable(error_file.read().decode(errors="replace")).strip()


def _read(report: Path) -> dict[str, Any]:
    if report.stat().st_size > _REPORT_LIMIT_BYTES:
        raise BundleNotLoaded("What it declares is too large.")
    try:
        declared: dict[str, Any] = storable_json(json.loads(report.read_bytes()))
    except ValueError as error:
        raise BundleNotLoaded(
            "The loader ended before it had reported: os._exit or a crash?"
        ) from error
    return declared


def _limits() -> Callable[[], None]:
    server = os.getpid()

    def set_limits() -> None:
        die_with_parent(server)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_LIMIT_BYTES, _FILE_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return set_limits


def _loader_user() -> int | None:
    """Return the user to load as: for root another user, since limits of a process do not bind
    root.

    None for ordinary users, and where the interpreter lies in a folder of root alone.
    """
    if os.geteuid() != 0:
        return None
    return _LOADER_USER if is_python_open_to_all() else None


@cache
def is_python_open_to_all() -> bool:
    """Tell whether every user can reach this Python and the SDK; log once where not."""
    required_files = (
        sys.executable,
        os.path.realpath(sys.executable),
        os.__file__,
        archives.__file__,
    )
    readable = all(
        parent.stat().st_mode & 0o001
        for path in required_files
        for parent in Path(path).absolute().parents
    )
    if not readable:
        log.warning(
            "definition files are loaded as root, since other users cannot reach Python: install"
            " Python and Slicewise where everybody may pass",
            extra={"python": sys.executable},
        )
    return readable


def _open_to_all(scratch: Path) -> None:
    for folder, _, files in os.walk(scratch):
        Path(folder).chmod(0o755)
        for name in files:
            (Path(folder) / name).chmod(0o644)
