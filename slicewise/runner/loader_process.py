"""The start of the loader process, which imports the files of a bundle under limits of time and
memory. Root starts the loader as another user; a keeper ends all processes of the load.
"""

import json
import os
import select
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from slicewise.loading import archives
from slicewise.partitions.limits import Limits
from slicewise.process.reachability import UntriedError, first_closed_path
from slicewise.process.removal import remove_folder
from slicewise.runner.loader_keeper import LoadEnd, LoadOrder, read_end
from slicewise.runner.loader_users import loader_user
from slicewise.runner.slot_users import NoFreeUserError

# Variables that the import of a definition file may need, and none that a server keeps to itself.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Of the loader of programs. Root's processes do without: user code could have written such files.
LIBRARY_VARIABLE = "LD_LIBRARY_PATH"
DEFAULT_SECONDS = 60
_REPORT_LIMIT_BYTES = 256 * 1024**2
_ERROR_TAIL_BYTES = 2000
_OUTPUT_TAIL_BYTES = 64 * 1024
_ANSWER_LIMIT_BYTES = 4096
# Over the limit of the load: the keeper needs time to end processes.
_KEEPER_SECONDS = 10
# Without the modules of the packages, which import a hundred others: the keeper needs a few.
_KEEPER = """
import sys, types
for name, folder in (("slicewise", sys.argv[3]), ("slicewise.runner", sys.argv[3] + "/runner")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from slicewise.runner.loader_keeper import main
main()
"""
# Where TMPDIR is closed to the loader's user, such as a folder of root's own.
_PLACES = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108


_FAILURES = (
    *(OSError, subprocess.SubprocessError, UntriedError, NoFreeUserError),
    *(archives.BundleError, tarfile.TarError, EOFError, zlib.error),
)


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
    with _failures_as_not_loaded(), loader_user(end_all, options.seconds) as owner:
        user = owner.user
        with _scratch(_scratch_parent(user)) as scratch:
            folder, temporary = scratch / "bundle", scratch / "tmp"
            archives.unpack(packed, folder)
            temporary.mkdir()
            for own in (folder, temporary):
                _give(own, user)
            # Passable, and readable by nobody else: both folders inside are closed to other users.
            scratch.chmod(0o711 if user is not None else 0o700)
            env = {**options.env, "TMPDIR": str(temporary)}
            owner.is_clean = False
            end = _load(folder, scratch, replace(options, env=env), user)
            owner.is_clean = end["is_clean"]
            return _report_of(end, scratch, options)


def load_in_place(folder: Path, options: LoaderOptions) -> LoaderReport:
    """Have the loader import files in their own folder, as this process's own user.

    Raises NotLoadedError as `load_archive` does.
    """
    with _failures_as_not_loaded(), _scratch(None) as scratch:
        return _report_of(_load(folder, scratch, options, None), scratch, options)


def _load(
    folder: Path, scratch: Path, options: LoaderOptions, user: tuple[int, int] | None
) -> LoadEnd:
    """Have a keeper run the loader; return the end of the load, whose files are in the scratch
    folder.
    """
    # The output of the loader goes to a file, which the size limit of the process bounds: a pipe
    # would fill the memory of this process, and be read for as long as any process lives that the
    # files have started.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with (
        os.fdopen(os.open(scratch / "report.json", flags, 0o600), "wb") as report,
        os.fdopen(os.open(scratch / "output", flags, 0o600), "wb") as output,
    ):
        order: LoadOrder = {
            "command": _command(folder, report.fileno(), options),
            "env": {**options.env},
            "cwd": str(folder),
            "report_fd": report.fileno(),
            "keeps_output": options.keeps_output,
            "seconds": options.seconds,
            "user": user,
        }
        return _follow(order, output.fileno())


def end_all(user: tuple[int, int]) -> bool:
    """End all processes of a user that no load has; return whether no process is left."""
    order: LoadOrder = {
        "command": [], "env": {}, "cwd": "/", "report_fd": -1, "keeps_output": False,
        "seconds": 0, "user": user,
    }  # fmt: skip
    return _follow(order, subprocess.DEVNULL)["is_clean"]


def _follow(order: LoadOrder, output: int) -> LoadEnd:
    """Start a keeper that follows the order; return the answer."""
    own_end, keeper_end = os.pipe()
    with os.fdopen(own_end, "rb", buffering=0) as answer, tempfile.TemporaryFile() as order_file:
        order_file.write(json.dumps(order).encode())
        order_file.seek(0)
        try:
            arguments = [str(keeper_end), str(os.getpid()), str(Path(__file__).parents[1])]
            keeper = subprocess.Popen(
                # No variable and no package acts upon the keeper, which may be root.
                [sys.executable, "-I", "-S", "-c", _KEEPER, *arguments],
                env=_keeper_environment(),
                cwd="/",
                stdin=order_file,
                stdout=output,
                stderr=output,
                pass_fds=[keeper_end, *([order["report_fd"]] if order["command"] else [])],
                start_new_session=True,
            )
        finally:
            os.close(keeper_end)
        with keeper:
            is_over = _wait_for_end(keeper, order["seconds"] + _KEEPER_SECONDS)
            keeper.kill()
        return read_end(answer.read(_ANSWER_LIMIT_BYTES) if is_over else b"")


def _keeper_environment() -> dict[str, str]:
    env = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    if os.geteuid() != 0 and LIBRARY_VARIABLE in os.environ:
        env[LIBRARY_VARIABLE] = os.environ[LIBRARY_VARIABLE]
    return env


def _wait_for_end(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Return whether a process ends in time."""
    watch = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(watch, select.POLLIN)
        return bool(end.poll(seconds * 1000))
    finally:
        os.close(watch)


def _report_of(end: LoadEnd, scratch: Path, options: LoaderOptions) -> LoaderReport:
    """Return the report of a load that has ended. Raises NotLoadedError."""
    if "error" in end:
        raise NotLoadedError(f"Its files were not loaded: {end['error'].rstrip('.')}.")
    if end["status"] is None:
        raise NotLoadedError(
            f"Its files were not loaded within {options.seconds} s (setting"
            " LOADER_TIMEOUT_SECONDS)."
        )
    with (scratch / "output").open("rb") as output:
        if end["status"] != 0:
            tail = _tail(output, _ERROR_TAIL_BYTES)
            raise NotLoadedError(f"The loader ended with status {end['status']}. {tail}".strip())
        return LoaderReport(
            _read(scratch / "report.json"),
            _tail(output, _OUTPUT_TAIL_BYTES),
        )


def _command(folder: Path, report: int, options: LoaderOptions) -> list[str]:
    """Return the command of the loader, with the limits on definitions as options."""
    # -P: without it the folder of the bundle would be searched first, and a bundle's json.py would
    # replace Python's own before the loader's first line.
    command = [sys.executable, "-P", "-m", "slicewise.loading.loader", str(folder)]
    command += ["--report-fd", str(report)]
    command += [] if options.only is None else [f"--only={options.only}"]
    limits = options.limits._asdict().items()
    return [*command, *(f"--{name.replace('_', '-')}={value}" for name, value in limits)]


def _tail(file: BinaryIO, length: int) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - length, 0))
    return file.read().decode(errors="replace").strip()


def _read(report: Path) -> Any:
    if report.stat().st_size > _REPORT_LIMIT_BYTES:
        raise NotLoadedError("The declarations of the bundle are too large.")
    try:
        return json.loads(report.read_bytes())
    except ValueError as error:
        raise NotLoadedError(
            "The loader ended before it had reported: os._exit or a crash?"
        ) from error


@contextmanager
def _failures_as_not_loaded() -> Iterator[None]:
    """Raise failures of the system, and a damaged archive, as NotLoadedError."""
    try:
        yield
    except _FAILURES as error:
        raise NotLoadedError(f"Its files were not loaded: {error}") from error


@contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="slicewise-load-", dir=parent))
    try:
        yield folder
    finally:
        # What a process that outlives the loader still creates there is left over.
        remove_folder(folder)


def _scratch_parent(user: tuple[int, int] | None) -> Path | None:
    """Return the folder for scratch folders, which the user can reach; None for the usual one."""
    if user is None:
        return None
    folders = [Path(tempfile.gettempdir()), *_PLACES]
    for folder in folders:
        if not first_closed_path(user, [f"x:{folder}"]):
            return folder
    raise NotLoadedError(
        f"Its files were not loaded: the user {user[0]} cannot reach {folders[0]}. Set TMPDIR to a"
        " folder that every user can reach."
    )


def _give(folder: Path, user: tuple[int, int] | None) -> None:
    """Give a folder with all inside to the user, closed to all others."""
    for path, _, names in os.walk(folder):
        for name in names:
            _own(Path(path, name), user, 0o600)
        _own(Path(path), user, 0o700)


def _own(path: Path, user: tuple[int, int] | None, mode: int) -> None:
    path.chmod(mode)
    if user is not None:
        os.chown(path, *user, follow_symlinks=False)
