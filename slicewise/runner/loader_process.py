"""The start of the loader process, which imports the files of a bundle under limits of time and
memory. Root starts the loader as another user.
"""

import json
import logging
import os
import resource
import select
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from slicewise.loading import archives
from slicewise.partitions.limits import Limits
from slicewise.process.reachability import UntriedError, first_closed_path
from slicewise.runner.processes import die_with_parent, kill_group

log = logging.getLogger(__name__)

# Variables that the import of a definition file may need, and none that a server keeps to itself.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
DEFAULT_SECONDS = 60
_MEMORY_LIMIT_BYTES = 4 * 1024**3
_FILE_LIMIT_BYTES = 64 * 1024**2
# Processes and threads of all loaders together, where loaders have a user of their own.
_PROCESS_LIMIT = 512
_REPORT_LIMIT_BYTES = 256 * 1024**2
_ERROR_TAIL_BYTES = 2000
_OUTPUT_TAIL_BYTES = 64 * 1024
# Not `nobody`: runs may have that user, and could end or change the loader of another bundle.
_LOADER_USER = 65_533
# Where TMPDIR is closed to the loader's user, such as a folder of root's own.
_PLACES = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108


class NotLoadedError(Exception):
    """The loader has given no usable report; the message says why."""


@dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """How a bundle is loaded: ``only`` names the one file to load, ``keeps_output`` collects the
    output of the files.
    """

    env: Mapping[str, str]
    seconds: int = DEFAULT_SECONDS
    limits: Limits = field(default_factory=Limits)
    only: str | None = None
    keeps_output: bool = False


@dataclass(frozen=True, slots=True)
class LoaderReport:
    """The declarations of a bundle, and the end of the output of the files."""

    declared: Any
    output: str


def load_archive(packed: bytes, options: LoaderOptions) -> LoaderReport:
    """Unpack a bundle and have the loader import the files, for root as another user.

    Raises NotLoadedError when the loader gives no usable report: time or memory ran out, the code
    ended the process, the archive is damaged, or the system had no room for it.
    """
    user = loader_user()
    with _failures_told(), _scratch(_scratch_parent(user)) as scratch:
        folder, temporary = scratch / "bundle", scratch / "tmp"
        archives.unpack(packed, folder)
        temporary.mkdir()
        for own in (folder, temporary):
            _give(own, user)
        # Passable, and readable by nobody else: both folders inside are closed to other users.
        scratch.chmod(0o711 if user is not None else 0o700)
        env = {**options.env, "TMPDIR": str(temporary)}
        return _load(folder, scratch, replace(options, env=env), user)


def load_in_place(folder: Path, options: LoaderOptions) -> LoaderReport:
    """Have the loader import files in their own folder, as this process's own user.

    Raises NotLoadedError as `load_archive` does.
    """
    with _failures_told(), _scratch(None) as scratch:
        return _load(folder, scratch, options, None)


def loader_user() -> int | None:
    """Return the user to load as: for root another user, since limits of a process do not bind
    root.

    None for ordinary users, and where that user cannot use Python. Raises NotLoadedError while
    that cannot be tried: a passing failure gives no file root's rights.
    """
    if os.geteuid() != 0:
        return None
    return _LOADER_USER if is_python_open_to_loader() else None


@cache
def is_python_open_to_loader() -> bool:
    """Return whether the loader's user can use this Python and the SDK; log once where not.

    Raises NotLoadedError while that cannot be tried. Then the next call tries again.
    """
    try:
        closed_path = first_closed_path((_LOADER_USER, _LOADER_USER))
    except UntriedError as error:
        raise NotLoadedError(
            f"Its files were not loaded: a trial of Python as the user {_LOADER_USER} failed"
            f" ({error}). The next load tries again."
        ) from error
    if closed_path:
        log.warning(
            "definition files are loaded as root, since other users cannot reach Python: install"
            " Python and Slicewise where everybody may pass",
            extra={"python": sys.executable, "closed_path": closed_path},
        )
    return not closed_path


def _load(folder: Path, scratch: Path, options: LoaderOptions, user: int | None) -> LoaderReport:
    report = scratch / "report.json"
    for file in (report, scratch / "output"):
        file.touch(mode=0o600)
    # The output of the loader goes to a file, which the size limit of the process bounds: a pipe
    # would fill the memory of this process, and be read for as long as any process lives that the
    # files have started.
    with report.open("wb") as sink, (scratch / "output").open("wb+") as output_file:
        process = subprocess.Popen(
            _command(folder, sink.fileno(), options),
            env=dict(options.env),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output_file if options.keeps_output else subprocess.DEVNULL,
            stderr=output_file,
            pass_fds=(sink.fileno(),),
            start_new_session=True,
            preexec_fn=_limits(has_own_user=user is not None),
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
        )
        status = _wait_for(process, options.seconds)
        if status is None:
            raise NotLoadedError(
                f"Its files were not loaded within {options.seconds} s (setting"
                " LOADER_TIMEOUT_SECONDS)."
            )
        if status != 0:
            tail = _tail(output_file, _ERROR_TAIL_BYTES)
            raise NotLoadedError(f"The loader ended with status {status}. {tail}".strip())
        return LoaderReport(_read(report), _tail(output_file, _OUTPUT_TAIL_BYTES))


def _command(folder: Path, report: int, options: LoaderOptions) -> list[str]:
    """Return the command of the loader, with the limits on definitions as options."""
    # -P: without it the folder of the bundle would be searched first, and a bundle's json.py would
    # replace Python's own before the loader's first line.
    command = [sys.executable, "-P", "-m", "slicewise.loading.loader", str(folder)]
    command += ["--report-fd", str(report)]
    command += [] if options.only is None else [f"--only={options.only}"]
    limits = options.limits._asdict().items()
    return [*command, *(f"--{name.replace('_', '-')}={value}" for name, value in limits)]


def _wait_for(process: "subprocess.Popen[bytes]", seconds: int) -> int | None:
    """Return the status of the loader once it has ended, None if the time ran out.

    Processes that the files have started in the process group of the loader end with it.
    """
    watch = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(watch, select.POLLIN)
        in_time = end.poll(seconds * 1000)
    finally:
        os.close(watch)
        # Killed before the wait: until then the number of the group cannot belong to another
        # process.
        kill_group(process.pid)
        status = process.wait()
    return status if in_time else None


def _tail(file: BinaryIO, length: int) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - length, 0))
    return file.read().decode(errors="replace").strip()


def _read(report: Path) -> Any:
    if report.stat().st_size > _REPORT_LIMIT_BYTES:
        raise NotLoadedError("What it declares is too large.")
    try:
        return json.loads(report.read_bytes())
    except ValueError as error:
        raise NotLoadedError(
            "The loader ended before it had reported: os._exit or a crash?"
        ) from error


def _limits(*, has_own_user: bool) -> Callable[[], None]:
    starter = os.getpid()

    def set_limits() -> None:
        die_with_parent(starter)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_LIMIT_BYTES, _FILE_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if has_own_user:
            # Never more than the server itself may have.
            _, most = resource.getrlimit(resource.RLIMIT_NPROC)
            limit = _PROCESS_LIMIT if most == resource.RLIM_INFINITY else min(_PROCESS_LIMIT, most)
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))

    return set_limits


@contextmanager
def _failures_told() -> Iterator[None]:
    """Raise failures of the system, and a damaged archive, as NotLoadedError."""
    try:
        yield
    except (OSError, archives.BundleError, tarfile.TarError, EOFError, zlib.error) as error:
        raise NotLoadedError(f"Its files were not loaded: {error}") from error


@contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    # What a process that outlives the loader still creates there is left over.
    with tempfile.TemporaryDirectory(
        prefix="slicewise-load-", dir=parent, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


def _scratch_parent(user: int | None) -> Path | None:
    """Return the folder for scratch folders, which the user can reach; None for the usual one."""
    if user is None:
        return None
    folders = [Path(tempfile.gettempdir()), *_PLACES]
    for folder in folders:
        try:
            if not first_closed_path((user, user), [f"x:{folder}"]):
                return folder
        except UntriedError as error:
            raise NotLoadedError(f"Its files were not loaded: {error}") from error
    raise NotLoadedError(
        f"Its files were not loaded: the user {user} cannot reach {folders[0]}. Set TMPDIR to a"
        " folder that every user can reach."
    )


def _give(folder: Path, user: int | None) -> None:
    """Give a folder with all inside to the user, closed to all others."""
    for path, _, names in os.walk(folder):
        for name in names:
            _own(Path(path, name), user, 0o600)
        _own(Path(path), user, 0o700)


def _own(path: Path, user: int | None, mode: int) -> None:
    path.chmod(mode)
    if user is not None:
        os.chown(path, user, user, follow_symlinks=False)
