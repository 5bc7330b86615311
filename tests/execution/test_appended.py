"""Partitions that runs append to: the record is of the whole partition, not of one addition."""

import json
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from accounts_app.models import User
from assets_app.execution.attempt.attempts import Attempt, intend_to_publish
from assets_app.execution.attempt.questions import Questions
from assets_app.execution.data.data_files import storage_of
from assets_app.execution.gateway import publishing
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.verifying import verify_partitions
from assets_app.models import Asset, Gateway, Materialization, Run, RunState
from slicewise import storage
from slicewise.io import Measured, Writer
from slicewise.io import recorded as recorded_module
from slicewise.io.file import FileStorage
from slicewise.io.postgres import PostgresStorage
from slicewise.storage import StorageError, TryAgainError
from tests.attempts import begin_next
from tests.factories import DAILY_2013, asset, outlet_of

pytestmark = pytest.mark.django_db

DAY = "2013-01-01"
PATH = f"partition={DAY}"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_module, "_PAUSE_SECONDS", 0.0)


class Location(ABC):
    """Where a growing asset is kept, and the ways in which tests stage and lose its data."""

    uri: str

    @abstractmethod
    def stage(self, attempt: Attempt, number: int) -> str:
        """Stage the addition of a run; return the staging location."""

    def lose(self, number: int) -> None:
        """Remove the data that the run with this number, from 1 on, has added."""
        raise NotImplementedError


class Folders(Location):
    def __init__(self, folder: Path) -> None:
        self.folder, self.uri = folder, f"file://localhost{folder}"
        folder.mkdir()

    def stage(self, attempt: Attempt, number: int) -> str:
        names = (attempt.run.pk, attempt.row.name_on_disk)
        staging = storage.staging_path(self.folder, *names, attempt.row.fence, partitioned=True)
        data = staging / PATH
        data.mkdir(parents=True)
        (data / f"part-{number}.parquet").write_bytes(b"0123456789")
        (data / storage.marker_name(*names)).touch()
        return str(staging)

    def lose(self, number: int) -> None:
        (self.folder / PATH / f"part-{number}.parquet").unlink()


class Bucket(Location):
    def __init__(self, folder: Path, connections: Path) -> None:
        self.folder, self.uri = folder, "s3://lake/grows"
        self._stagings: list[Path] = []
        folder.mkdir()
        connections.write_text(json.dumps({"s3://lake": {"arrow": f"file://{folder}"}}))

    def stage(self, attempt: Attempt, number: int) -> str:
        writer = Writer(run_id=attempt.run.pk, attempt=attempt.row.name_on_disk)
        staging = storage_of(self.uri).staging(writer, partitioned=True)
        data = self.folder / "grows" / staging / PATH
        data.mkdir(parents=True)
        (data / "part-0.parquet").write_bytes(b"0123456789")
        self._stagings.append(data)
        return staging

    def lose(self, number: int) -> None:
        (self._stagings[number - 1] / "part-0.parquet").unlink()


class TableOfRows(Location):
    def __init__(self, connections: Path) -> None:
        parameters = connection.get_connection_params()
        place = f"postgres://{parameters['host']}:{parameters['port']}/{parameters['dbname']}"
        login = {"user": parameters["user"], "password": parameters["password"]}
        connections.write_text(json.dumps({place: login}))
        self.uri = f"{place}/shop/grows"
        names = {name: parameters[name] for name in ("host", "port", "dbname")}
        self.shop = psycopg.connect(**names, **login, autocommit=True)
        self.shop.execute("CREATE SCHEMA shop")

    def stage(self, attempt: Attempt, number: int) -> str:
        plain = f"{attempt.run.pk}_{attempt.row.name_on_disk}".replace("-", "_")
        table = f'shop."_slicewise_{plain}"'
        self.shop.execute(f'CREATE TABLE {table} ("partition" text, n int)')
        self.shop.execute(f"INSERT INTO {table} VALUES ('{DAY}', {number})")
        return f"_slicewise_{plain}"

    def close(self) -> None:
        self.shop.execute("DROP SCHEMA shop CASCADE")
        self.shop.close()


@pytest.fixture
def connections(tmp_path: Path, settings: Any) -> Path:
    path = tmp_path / "connections.json"
    path.write_text("{}")
    settings.SLICEWISE_CONNECTIONS = path
    return path


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "grows")


@pytest.fixture(params=["file", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path, connections: Path) -> Location:
    if request.param == "s3":
        return Bucket(tmp_path / "lake", connections)
    return Folders(tmp_path / "grows")


def growing(location: Location, name: str = "grows") -> Asset:
    return asset(
        name,
        DAILY_2013,
        options={"write_mode": "append"},
        uri=location.uri,
        canonical_uri=location.uri,
    )


def add(of: Asset, location: Location, user: User, gateway: Gateway, number: int) -> Run:
    """Publish an addition of 1 row and 10 bytes to a day, as a worker does."""
    run = materialize(MaterializeRequest(asset=of, selection=DAY), user=user).runs.get()
    attempt = begin_next(run, gateway)
    staging = location.stage(attempt, number)
    staged = [{"key": DAY, "path": PATH, "rows": 1, "bytes": 10}]
    outlet = outlet_of(attempt, staged, of=of, root=location.uri, staging=staging)
    outlet = replace(outlet, write_mode="append")
    assert intend_to_publish(attempt.row, [outlet])
    publishing.publish(attempt.row, [outlet])
    run.refresh_from_db()
    return run


def reasons(of: Asset, user: User) -> list[str]:
    return [difference.reason for difference in verify_partitions(of, "", user=user).differing]


def test_an_older_addition_that_is_lost_is_noticed(
    location: Location, alice: User, gateway: Gateway
) -> None:
    grows = growing(location)
    for number in (1, 2, 3):
        assert add(grows, location, alice, gateway, number).state == RunState.SUCCEEDED
        assert reasons(grows, alice) == []
    location.lose(1)
    assert reasons(grows, alice) == ["2 files, 3 recorded"]
    location.lose(2)
    assert reasons(grows, alice) == ["1 file, 3 recorded"]


def test_a_read_is_compared_with_the_whole_partition(
    folders: Folders, alice: User, gateway: Gateway
) -> None:
    grows = growing(folders)
    for number in (1, 2):
        add(grows, folders, alice, gateway, number)
    week = asset("week", upstream={"grows": None})
    run = materialize(MaterializeRequest(asset=week), user=alice).runs.get()
    questions = Questions(begin_next(run, gateway))
    answer = questions.answer({"question": "recorded", "asset": "grows", "keys": [DAY]})
    assert answer["recorded"] == {DAY: [None, 20, False, 2]}


def test_the_record_of_a_run_keeps_the_size_of_the_addition(
    folders: Folders, alice: User, gateway: Gateway
) -> None:
    grows = growing(folders)
    for number in (1, 2):
        add(grows, folders, alice, gateway, number)
    record = Materialization.objects.get(version=2)
    assert (record.rows, record.bytes) == (1, 10)
    assert (record.total_files, record.total_bytes, record.total_rows) == (2, 20, None)


def test_data_that_an_asset_of_the_same_location_has_added_is_no_difference(
    folders: Folders, alice: User, gateway: Gateway
) -> None:
    grows, beside = growing(folders), growing(folders, "beside")
    add(grows, folders, alice, gateway, 1)
    add(beside, folders, alice, gateway, 2)
    assert reasons(grows, alice) == reasons(beside, alice) == []
    folders.lose(1)
    assert reasons(beside, alice) == ["1 file, 2 recorded"]


def test_a_record_without_totals_is_compared_as_the_least(
    folders: Folders, alice: User, gateway: Gateway
) -> None:
    grows = growing(folders)
    for number in (1, 2):
        add(grows, folders, alice, gateway, number)
    # As an earlier release has recorded it.
    Materialization.objects.update(total_files=None, total_rows=None, total_bytes=None)
    assert reasons(grows, alice) == []
    folders.lose(1)
    assert reasons(grows, alice) == []
    folders.lose(2)
    assert reasons(grows, alice) == ["no data"]


@pytest.mark.parametrize("error", [StorageError("no"), TryAgainError("away"), OSError("away")])
def test_data_that_cannot_be_measured_is_published_and_recorded_without_totals(
    folders: Folders,
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def refuse(self: FileStorage, paths: Any) -> dict[str, Measured | None]:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(FileStorage, "measure", refuse)
        run = add(growing(folders), folders, alice, gateway, 1)
    assert run.state == RunState.SUCCEEDED
    assert Materialization.objects.get().total_bytes is None


def test_a_table_is_not_counted_after_each_addition(
    connections: Path, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: PostgresStorage, paths: Any) -> dict[str, Measured | None]:
        raise AssertionError("a count costs as much as the table has rows")

    table = TableOfRows(connections)
    with monkeypatch.context() as patched:
        patched.setattr(PostgresStorage, "measure", refuse)
        run = add(growing(table), table, alice, gateway, 1)
    table.close()
    assert run.state == RunState.SUCCEEDED
    assert Materialization.objects.get().total_rows is None
