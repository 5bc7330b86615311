"""A worker that is root publishes by a process of the user that runs have.

Where the tests are not root, no such user is named, and the worker publishes by itself.
"""

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from accounts_app.models import User
from assets_app.execution.data import data_files
from assets_app.execution.data.data_files import storage_of
from assets_app.execution.request.verifying import verify_partitions
from assets_app.models import Asset, Run, RunState
from slicewise import storage
from slicewise.data_helper.forwarding import forwarded
from slicewise.io import NoStorageError, Storage
from tests.execution.conftest import alice, gateway
from tests.supervised_runs import (
    ENDED,
    Message,
    Worker,
    change_options,
    execute,
    run,
    spark,
    worker,
)

__all__ = ["alice", "gateway", "run", "spark", "worker"]

IS_ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
FOLDER = "partition=2013-01-01"


@pytest.fixture(autouse=True)
def runner_user(settings: Any) -> Iterator[None]:
    settings.RUNNER_USER = "nobody" if IS_ROOT else ""
    yield
    data_files._helper.cache_clear()


@pytest.fixture
def root() -> Iterator[Path]:
    """Make the asset's folder, below a folder that all users reach."""
    home = Path(tempfile.mkdtemp(prefix="slicewise-lake-"))
    home.chmod(0o755)
    (home / "lake" / "asset").mkdir(parents=True)
    give(home / "lake")
    yield home / "lake" / "asset"
    shutil.rmtree(home)


def give(folder: Path) -> None:
    if IS_ROOT:
        for place in (folder, *folder.rglob("*")):
            os.lchown(place, NOBODY.pw_uid, NOBODY.pw_gid)


class Code:
    """User code that writes its partition, and then changes its folders."""

    def __init__(self, worker: Worker, root: Path) -> None:
        self.worker, self.root = worker, root
        worker.launch = self.launch  # type: ignore[method-assign]

    def tamper(self, staging: Path) -> None:
        """Change nothing."""

    def launch(self, request: Message) -> Any:
        names = (request["run_id"], request["attempt_name"])
        staging = storage.staging_path(self.root, *names, request["fence"], partitioned=True)
        (staging / FOLDER).mkdir(parents=True)
        (staging / FOLDER / "part.parquet").write_text("rows")
        (staging / FOLDER / storage.marker_name(*names)).touch()
        partition = {"key": "2013-01-01", "path": FOLDER, "rows": 1, "bytes": 4}
        message = {"type": "staged", "root": "", "staging": str(staging), "partitions": [partition]}
        self.tamper(staging)
        give(self.root.parent)
        self.worker.said = [message, {"type": "finished"}, ENDED]
        return Worker.launch(self.worker, request)


@pytest.mark.parametrize("mode", ["replace", "append", "version"])
def test_published_data_belongs_to_the_user_of_runs(
    worker: Worker, run: Run, root: Path, alice: User, mode: str
) -> None:
    change_options(write_mode=mode)
    Code(worker, root)
    assert execute(run).state == RunState.SUCCEEDED, run.error
    assert (root / FOLDER / "part.parquet").read_text() == "rows"
    owner = NOBODY.pw_uid if IS_ROOT else os.geteuid()
    assert {place.lstat().st_uid for place in root.rglob("*")} == {owner}
    assert not list(root.glob("_slicewise-s*"))
    Asset.objects.update(canonical_uri=f"file://{root}")
    asset = Asset.objects.select_related("partition_definition").get()
    assert verify_partitions(asset, "", user=alice).differing == []
    (root / FOLDER / "part.parquet").write_text("x")
    (difference,) = verify_partitions(asset, "", user=alice).differing
    assert difference.reason == "1 bytes, 4 recorded"


def test_a_folder_that_became_a_link_is_not_published_into(
    worker: Worker, run: Run, root: Path
) -> None:
    """In this attack, code had root replace a folder of root by a folder of the code."""
    victim = root.parent.parent / "victim"
    (victim / FOLDER).mkdir(parents=True)
    (victim / FOLDER / "module.py").write_text("theirs")
    victim.chmod(0o555)

    class Attack(Code):
        def tamper(self, staging: Path) -> None:
            # What waits is where the worker looks for it, by way of the link as well.
            victim.chmod(0o755)
            os.rename(staging, victim / staging.name)
            give(victim / staging.name)
            victim.chmod(0o555)
            os.rename(self.root, self.root.with_name("real"))
            self.root.symlink_to(victim)

    Attack(worker, root)
    before = (victim / FOLDER).stat()
    if IS_ROOT:
        assert before.st_uid == 0
    ended = execute(run)
    assert ended.state == RunState.FAILED
    assert "Permission denied" in ended.error
    assert ("as root to this user once" in ended.error) is IS_ROOT
    after = (victim / FOLDER).stat()
    assert (after.st_ino, after.st_uid) == (before.st_ino, before.st_uid)
    assert (victim / FOLDER / "module.py").read_text() == "theirs"
    victim.chmod(0o755)


def test_a_marker_that_leads_to_a_file_of_root_s_is_not_written_through(
    worker: Worker, run: Run, root: Path
) -> None:
    change_options(write_mode="append")
    secret = root.parent.parent / "secret"
    secret.write_text("theirs")
    secret.chmod(0o600)

    class Attack(Code):
        def tamper(self, staging: Path) -> None:
            (marker,) = (staging / FOLDER).glob("_slicewise-*")
            marker.unlink()
            marker.symlink_to(secret)

    Attack(worker, root)
    execute(run)
    assert secret.read_text() == "theirs"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def is_forwarded(storage: Storage) -> bool:
    return type(storage).__module__ == forwarded.__module__


def test_a_server_that_is_reached_by_login_is_asked_by_the_worker_itself() -> None:
    assert is_forwarded(storage_of("file:///lake/a")) is IS_ROOT
    assert not is_forwarded(storage_of("postgres://host/database/schema/table"))
    assert not is_forwarded(storage_of("s3://bucket/a"))
    assert not is_forwarded(storage_of("gcs://bucket/a"))


def test_a_folder_that_stands_for_a_bucket_is_a_folder(settings: Any, tmp_path: Path) -> None:
    settings.SLICEWISE_CONNECTIONS = tmp_path / "connections.json"
    settings.SLICEWISE_CONNECTIONS.write_text('{"s3://bucket": {"arrow": "file:///lake"}}')
    assert is_forwarded(storage_of("s3://bucket/a")) is IS_ROOT


@pytest.mark.parametrize("uri", ["lake/sales", "./lake/sales", "file:lake/sales"])
def test_a_relative_uri_is_worked_on_by_nobody(uri: str) -> None:
    """Workers, helpers and runs have other working directories: no folder is meant."""
    with pytest.raises(NoStorageError):
        storage_of(uri)


def test_without_another_user_the_worker_works_on_files_itself(settings: Any) -> None:
    settings.RUNNER_USER = ""
    assert not is_forwarded(storage_of("file:///lake/a"))


def test_a_process_that_is_not_root_works_on_files_itself(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the web server's, which has the same settings."""
    settings.RUNNER_USER = "nobody"
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert not is_forwarded(storage_of("file:///lake/a"))


def test_a_user_that_is_not_there_is_no_reason_to_work_as_root(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RUNNER_USER = "no-such-user"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ImproperlyConfigured):
        storage_of("file:///lake/a")
