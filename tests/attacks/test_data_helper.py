"""The process that works on data for a worker that is root: the process has the user of runs.

Where the tests are not root, the process has the tests' user; nothing else differs.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise.data_helper.calls import CALLS, UnfitAnswerError
from slicewise.data_helper.client import DataHelper
from slicewise.data_helper.error_json import error_from_json, error_to_json
from slicewise.data_helper.forwarding import forwarded
from slicewise.io import Measured, NoStorageError, Storage, StorageLocation, Writer, storage_at
from slicewise.io.base import WriteMode
from slicewise.plugins import PluginError
from slicewise.runner.user_environment import take_environment, with_held_back_names
from slicewise.storage import (
    StagingLostError,
    StorageError,
    TryAgainError,
    UnfitFileSystemError,
    UnfitLocationError,
    UnfitStoreError,
    marker_name,
)
from tests.processes import is_alive

IS_ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
USER = (NOBODY.pw_uid, NOBODY.pw_gid) if IS_ROOT else None
ENV = {"PATH": os.environ["PATH"]}
# Much longer than a slow machine takes for the question whether a location can be reached.
_PATIENCE = 20.0
MODES: list[WriteMode] = ["replace", "append", "version"]


@pytest.fixture(scope="module")
def helper() -> Iterator[DataHelper]:
    """Start a helper that many tests share."""
    running = DataHelper(env=ENV, user=USER)
    yield running
    running.close()


@pytest.fixture
def own_helper() -> Iterator[DataHelper]:
    """Start a helper that a test may kill."""
    running = DataHelper(env=ENV, user=USER)
    yield running
    running.close()


@pytest.fixture
def hasty_helper() -> Iterator[DataHelper]:
    """Start a helper with little patience, which lets no test publish much to its end."""
    running = DataHelper(env=ENV, user=USER, patience=_PATIENCE)
    yield running
    running.close()


@pytest.fixture
def lake() -> Iterator[Path]:
    """Make a folder of the user, which other users reach."""
    folder = Path(tempfile.mkdtemp(prefix="slicewise-lake-"))
    folder.chmod(0o755)
    give(folder)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def give(folder: Path) -> None:
    """Give a folder and its contents to the runs' user, as if a run had made both."""
    if USER is not None:
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, *USER)


def stage(storage: Storage, writer: Writer, count: int, text: str = "new") -> tuple[str, list[Any]]:
    """Write a partition as a run does; return the staging folder and the partitions."""
    staging = Path(storage.staging(writer, partitioned=True))
    partitions = []
    for number in range(count):
        folder = staging / f"day={number}"
        folder.mkdir(parents=True)
        (folder / f"part-{writer.run_id}").write_text(text)
        (folder / marker_name(writer.run_id, writer.attempt)).touch()
        partitions.append({"key": str(number), "path": folder.name, "rows": 1, "bytes": 3})
    give(staging.parent)
    return str(staging), partitions


def storage_in(lake: Path, helper: DataHelper, mode: WriteMode = "replace") -> Storage:
    return forwarded(storage_at(StorageLocation(uri=str(lake / "asset"), write_mode=mode)), helper)


def children(helper: DataHelper) -> list[int]:
    """Return the processes that the helper has forked for requests and that are at work."""
    try:
        text = Path(f"/proc/{helper.pid}/task/{helper.pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(pid) for pid in text.split()]


def await_that(is_so: Callable[[], object], seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.002)


def in_the_background(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []

    def work() -> None:
        try:
            results.append(act())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, results


@pytest.mark.parametrize("mode", MODES)
def test_all_is_done_by_the_user_that_runs_have(
    lake: Path, helper: DataHelper, mode: WriteMode
) -> None:
    storage = storage_in(lake, helper, mode)
    storage.refuse_unfit_location()
    assert not storage.is_reachable()
    for run_id in (1, 2):
        writer = Writer(run_id=run_id, attempt="a")
        staging, partitions = stage(storage, writer, 3)
        storage.check(staging, partitions, writer)
        facts = storage.publish(staging, partitions, writer)
        version = {"version": run_id} if mode == "version" else {}
        assert facts == {f"day={number}": version for number in range(3)}
        paths = [partition["path"] for partition in partitions]
        assert storage.published([*paths, "day=9"], writer) == paths
        storage.discard(writer)
    assert storage.is_reachable()
    file_names = ["part-1", "part-2"] if mode == "append" else ["part-2"]
    assert sorted(path.name for path in (lake / "asset" / "day=1").glob("part-*")) == file_names
    size = Measured(bytes=3 * len(file_names), files=len(file_names))
    assert storage.measure(["day=1", "day=9"]) == {"day=1": size, "day=9": None}
    assert storage.remove({"day=1": [writer], "day=2": [Writer(run_id=7, attempt="a")]}) == {
        "day=2": "the data is not the data of the run on record"
    }
    assert not (lake / "asset" / "day=1").exists()
    owner = os.geteuid() if USER is None else USER[0]
    assert {path.lstat().st_uid for path in lake.rglob("*")} == {owner}
    assert not list((lake / "asset").glob("_slicewise-s*"))


@pytest.mark.parametrize("mode", MODES)
def test_files_that_the_user_may_not_write_are_not_changed(
    lake: Path, helper: DataHelper, mode: WriteMode
) -> None:
    """The asset's folder is made a link to a folder that the worker alone may write."""
    victims = lake / "victims"
    (victims / "day=0").mkdir(parents=True)
    (victims / "day=0" / "module.py").write_text("theirs")
    storage = storage_in(lake, helper, mode)
    writer = Writer(run_id=1, attempt="a")
    # Beside the victim, where the run may write.
    staging, partitions = stage(storage, writer, 1)
    os.rename(lake / "asset", lake / "real")
    (lake / "asset").symlink_to(victims)
    if USER is not None:
        os.lchown(lake / "asset", *USER)
        for path in (victims, *victims.rglob("*")):
            os.chown(path, 0, 0)
    victims.chmod(0o555)
    with pytest.raises((PermissionError, StorageError)):
        storage.publish(staging, partitions, writer)
    storage.discard(writer)
    assert [path.name for path in victims.rglob("*")] == ["day=0", "module.py"]
    assert (victims / "day=0" / "module.py").read_text() == "theirs"
    victims.chmod(0o755)


def test_a_marker_that_leads_to_a_file_of_root_s_is_not_written_through(
    lake: Path, helper: DataHelper
) -> None:
    secret = lake / "secret"
    secret.write_text("theirs")
    secret.chmod(0o400)
    storage = storage_in(lake, helper, "append")
    writer = Writer(run_id=1, attempt="a")
    staging, partitions = stage(storage, writer, 1)
    marker = Path(staging) / "day=0" / marker_name(1, "a")
    marker.unlink()
    marker.symlink_to(secret)
    if IS_ROOT:
        os.chown(secret, 0, 0)
        os.lchown(marker, *(USER or ()))
    storage.publish(staging, partitions, writer)
    assert secret.read_text() == "theirs"


def test_it_has_no_rights_no_descriptors_and_no_memory_that_others_read(
    helper: DataHelper, lake: Path
) -> None:
    storage_in(lake, helper).is_reachable()
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{helper.pid}/status").read_text().splitlines()
    )
    uid, gid = USER or (os.getuid(), os.getgid())
    assert status["Uid"].split() == [str(uid)] * 4
    assert status["Gid"].split() == [str(gid)] * 4
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    for name in ("environ", "mem", "maps", "fd/0"):
        code = "import sys; open(sys.argv[1], 'rb')"
        error = _as_user([sys.executable, "-I", "-S", "-c", code, f"/proc/{helper.pid}/{name}"])
        assert "PermissionError" in error, name
    if IS_ROOT:
        assert status["Groups"].split() == []
        folder = Path(f"/proc/{helper.pid}/fd")
        targets = [os.readlink(path) for path in folder.iterdir()]
        assert sorted(path.partition(":")[0] for path in targets) == [*["/dev/null"] * 3, "socket"]


def _as_user(command: list[str]) -> str:
    """Run a command as another process of the user, and return its errors."""
    child = os.fork() if USER is not None else None
    if child is None:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.stderr
    if child == 0:
        status = 0
        try:
            os.setgroups([])
            os.setresgid(*[NOBODY.pw_gid] * 3)
            os.setresuid(*[NOBODY.pw_uid] * 3)
            open(command[-1], "rb").close()
            status = 1
        except PermissionError:
            status = 0
        except OSError:
            status = 2
        finally:
            os._exit(status)
    return "PermissionError" if os.waitpid(child, 0)[1] == 0 else ""


def test_it_sees_nothing_of_the_worker_s_environment(lake: Path) -> None:
    os.environ["SLICEWISE_TEST_SECRET"] = "hunter2"
    try:
        helper = DataHelper(env=ENV, user=USER)
        storage_in(lake, helper).is_reachable()
    finally:
        del os.environ["SLICEWISE_TEST_SECRET"]
    if IS_ROOT:
        assert "hunter2" not in Path(f"/proc/{helper.pid}/environ").read_text()
    assert helper.pid is not None
    helper.close()


def test_one_that_dies_while_it_publishes_is_followed_by_another(
    lake: Path, own_helper: DataHelper
) -> None:
    storage = storage_in(lake, own_helper)
    first = Writer(run_id=1, attempt="a")
    staging, partitions = stage(storage, first, 600)
    storage.is_reachable()
    thread, results = in_the_background(lambda: storage.publish(staging, partitions, first))
    await_that(lambda: (lake / "asset" / "day=3").exists())
    for pid in [*children(own_helper), own_helper.pid]:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    thread.join(120)
    assert isinstance(results[0], TryAgainError), "it ended before it was killed"
    assert "ended" in str(results[0])
    paths = [partition["path"] for partition in partitions]
    then = Writer(run_id=1, attempt="a", fence=2)
    published = storage.published(paths, then)
    assert 0 < len(published) < len(paths)
    assert set(storage.publish(staging, partitions, then)) == set(paths)
    assert storage.published(paths, then) == paths


def test_one_that_hangs_keeps_nobody_waiting_and_changes_nothing_afterwards(
    lake: Path, hasty_helper: DataHelper
) -> None:
    storage = storage_in(lake, hasty_helper)
    first = Writer(run_id=1, attempt="a")
    staging, partitions = stage(storage, first, 600)
    storage.is_reachable()
    thread, results = in_the_background(lambda: storage.publish(staging, partitions, first))
    await_that(lambda: (lake / "asset" / "day=3").exists())
    before = hasty_helper.pid
    # The process of the request before may still be ending.
    await_that(lambda: len(children(hasty_helper)) == 1)
    (hanging,) = children(hasty_helper)
    os.kill(hanging, signal.SIGSTOP)
    assert storage.is_reachable()
    assert thread.is_alive(), "it waited for the one that hangs"
    thread.join(120)
    assert isinstance(results[0], TryAgainError)
    assert f"has not answered for {_PATIENCE:g} s" in str(results[0])
    assert storage.is_reachable()
    assert hasty_helper.pid != before, "who lets one wait so long is replaced"
    patient = storage_in(lake, DataHelper(env=ENV, user=USER))
    patient.publish(staging, partitions, Writer(run_id=1, attempt="a", fence=2))
    inodes = {path.name: path.stat().st_ino for path in (lake / "asset").glob("day=*")}
    os.kill(hanging, signal.SIGCONT)
    await_that(lambda: not is_alive(hanging))
    assert inodes == {path.name: path.stat().st_ino for path in (lake / "asset").glob("day=*")}
    vars(patient)["_helper"].close()


def test_one_that_is_stopped_is_replaced(lake: Path) -> None:
    # Much longer than a slow machine takes to begin the requests at the next helper.
    helper = DataHelper(env=ENV, user=USER, begin_patience=8.0)
    storage = storage_in(lake, helper)
    storage.is_reachable()
    stopped = helper.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    requests = [in_the_background(storage.is_reachable) for _ in range(4)]
    for thread, results in requests:
        thread.join(120)
        assert results == [False]
    assert helper.pid != stopped
    assert not is_alive(stopped)
    helper.close()


def test_one_that_dies_while_it_starts_is_started_once_more(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nmkdir {tmp_path}/once && exit 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    helper = DataHelper(env=ENV, user=USER)
    assert not storage_in(lake, helper).is_reachable()
    helper.close()


def test_nothing_in_its_environment_runs_code_before_it_has_its_user(lake: Path) -> None:
    """PYTHONPATH and HOME name folders of the user, who may put code there."""
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = lake / ".local/lib" / minor / "site-packages"
    site.mkdir(parents=True)
    (lake / "sitecustomize.py").write_text(f"open({str(lake / 'ran-path')!r}, 'w')\n")
    (site / "code.pth").write_text(f"import os; open({str(lake / 'ran-home')!r}, 'w')\n")
    give(lake)
    env = {**ENV, "PYTHONPATH": str(lake), "HOME": str(lake), "PYTHONUSERBASE": f"{lake}/.local"}
    helper = DataHelper(env=env, user=USER)
    storage_in(lake, helper).is_reachable()
    assert not list(lake.glob("ran-*"))
    helper.close()


def test_it_has_the_environment_of_user_code_when_it_has_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        os, "environ", with_held_back_names({"PYTHONPATH": "/code", "LANG": "C.UTF-8"})
    )
    assert "PYTHONPATH" not in os.environ
    take_environment()
    assert os.environ == {"PYTHONPATH": "/code", "LANG": "C.UTF-8"}


def test_it_ends_with_its_worker(lake: Path) -> None:
    code = (
        "import sys, time\n"
        "from slicewise.data_helper.client import DataHelper\n"
        "from slicewise.io import StorageLocation\n"
        f"helper = DataHelper(env={ENV!r}, user={USER!r})\n"
        f"helper.call('is_reachable', StorageLocation(uri={str(lake)!r}), {{}})\n"
        "print(helper.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        assert is_alive(pid)
        worker.kill()
    await_that(lambda: not is_alive(pid))


def test_one_that_cannot_be_started_is_a_failure_that_may_pass(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    storage = storage_in(lake, DataHelper(env=ENV, user=USER))
    with pytest.raises(TryAgainError, match="did not start"):
        storage.is_reachable()


ERRORS: list[tuple[Exception, type[Exception], str]] = [
    (StagingLostError("gone"), StagingLostError, "gone"),
    (StorageError("no"), StorageError, "no"),
    (
        UnfitFileSystemError("lock a folder", Path("/x")),
        UnfitFileSystemError,
        "the file system of /x",
    ),
    (UnfitStoreError("s3://x", "501"), UnfitStoreError, "the store of s3://x"),
    (UnfitLocationError("no"), UnfitLocationError, "no"),
    (TryAgainError("busy"), TryAgainError, r"\[Errno 11\] busy"),
    (OSError(28, "No space left", "/x"), OSError, r"\[Errno 28\] No space left: '/x'"),
    (FileNotFoundError(2, "No such file", "/x"), FileNotFoundError, r"\[Errno 2\]"),
    (NoStorageError("none"), NoStorageError, "none"),
    (PluginError("broken"), PluginError, "broken"),
    (ValueError("bad"), ValueError, "bad"),
    (KeyError("x"), LookupError, "KeyError: 'x'"),
    (ZeroDivisionError("x"), ArithmeticError, "ZeroDivisionError: x"),
    (OSError("without a number"), OSError, "without a number"),
]


@pytest.mark.parametrize(("error", "cls", "message"), ERRORS, ids=lambda error: str(error)[:30])
def test_errors_keep_their_class(error: Exception, cls: type[Exception], message: str) -> None:
    raised = error_from_json(error_to_json(error))
    assert type(raised) is cls
    assert getattr(raised, "errno", None) == getattr(error, "errno", None)
    with pytest.raises(cls, match=message):
        raise raised


def test_errors_are_raised_where_the_helper_was_asked(lake: Path, helper: DataHelper) -> None:
    writer = Writer(run_id=1, attempt="a")
    with pytest.raises(StagingLostError, match="was not published"):
        storage_in(lake, helper).publish(str(lake / "asset" / "_s"), [{"path": "day=1"}], writer)
    with pytest.raises(NoStorageError):
        helper.call("is_reachable", StorageLocation(uri="nothing://x"), {})


OF = {"paths": ["a", "b"], "partitions": [{"path": "a"}], "writers": {"a": []}}


UNFIT: dict[str, list[object]] = {
    "publish": [[], {"b": {}}, {"a": 1}, None],
    "published": [{}, ["c"], [1], None],
    "measure": [
        *({}, {"a": None}, [], {"a": [1, 2, 3], "b": 3}),
        *({"a": None, "b": [1]}, {"a": None, "b": [1, 2]}, {"a": None, "b": [-1, 0, 0]}),
        *({"a": None, "b": [2**63, 0, 0]}, {"a": None, "b": ["1", 0, 0]}),
    ],
    "remove": [{"b": "x"}, {"a": 1}, None],
    **{call: [1] for call in ("check", "discard", "refuse_unfit_location", "is_reachable")},
}


@pytest.mark.parametrize(
    ("call", "result"), [(call, result) for call, results in UNFIT.items() for result in results]
)
def test_an_answer_of_another_form_is_refused(call: str, result: object) -> None:
    with pytest.raises(UnfitAnswerError):
        CALLS[call].read(result, OF)


@pytest.mark.parametrize(
    "fields", [None, {}, {"class": "SystemExit", "message": "x"}, {"class": "OSError"}]
)
def test_an_error_of_another_form_is_refused(fields: object) -> None:
    with pytest.raises(ValueError, match="error"):
        error_from_json(fields)
