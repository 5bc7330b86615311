"""Logins come from a file of the gateway, for the places that the file names and no other."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.db import connection

from accounts_app.models import User
from assets_app.execution.attempt.attempts import Attempt, intend_to_publish
from assets_app.execution.attempt.outputs import StagedOutlet
from assets_app.execution.data.connections import ConnectionsError, connection_of
from assets_app.execution.gateway import publishing
from assets_app.execution.gateway.recovery import recover
from assets_app.models import AssetPartition, Gateway, Run, RunAttempt, RunState
from tests.attempts import begun
from tests.execution.conftest import at_work, lose_the_worker
from tests.factories import DAILY_2013, asset, outlet_of

SHOP = {"user": "runs", "password": "s3cret"}


@pytest.fixture
def connections_file(tmp_path: Path, settings: Any) -> Path:
    """Return the file of connections."""
    path = tmp_path / "connections.json"
    settings.SLICEWISE_CONNECTIONS = path
    path.write_text(json.dumps({"postgresql://DB/shop": SHOP, "postgres://db:5432/shop/own": {}}))
    return path


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("postgres://db:5432/shop/public/sales", SHOP),
        ("postgres://db:5432/shop/own/sales", {}),
        ("postgres://db:5432/shopping/public/sales", {}),
        ("postgres://other:5432/shop/public/sales", {}),
        ("file://localhost/lake", {}),
    ],
)
def test_the_longest_beginning_of_a_uri_counts(
    connections_file: Path, uri: str, expected: dict[str, str]
) -> None:
    assert connection_of(uri) == expected


def test_a_changed_password_is_used_at_once(connections_file: Path) -> None:
    uri = "postgres://db:5432/shop/public/sales"
    connections_file.write_text(json.dumps({"postgres://db/shop": {"password": "new"}}))
    assert connection_of(uri) == {"password": "new"}


@pytest.mark.parametrize("text", ["{", "[]", '{"postgres://db": "runs:secret"}'])
def test_a_file_that_says_no_connections_is_refused_with_its_name(
    connections_file: Path, text: str
) -> None:
    connections_file.write_text(text)
    with pytest.raises(ConnectionsError, match=r"connections\.json") as refused:
        connection_of("postgres://db:5432/shop/public/sales")
    assert "runs:secret" not in str(refused.value)


def test_without_a_file_nothing_is_known(settings: Any) -> None:
    settings.SLICEWISE_CONNECTIONS = None
    assert connection_of("postgres://db:5432/shop/public/sales") == {}


def own_database() -> tuple[str, dict[str, Any]]:
    """Return the place of the tests' own database, and the login."""
    parameters = connection.get_connection_params()
    place = f"postgres://{parameters['host']}:{parameters['port']}/{parameters['dbname']}"
    return place, {"user": parameters["user"], "password": parameters["password"]}


def two_days(alice: User, gateway: Gateway, place: str) -> tuple[Attempt, StagedOutlet]:
    """Create a run of a table of that place, which has made two days of the table."""
    sales = asset("sales", DAILY_2013, uri=f"{place}/shop/sales")
    attempt = begun(sales, alice, gateway, "2013-01-01..2013-01-02", strategy="range")
    pieces = [
        {"key": key, "path": f"partition={key}", "rows": 1, "bytes": 1} for key in attempt.keys
    ]
    return attempt, outlet_of(attempt, pieces, root=f"{place}/shop/sales", staging="")


def test_a_table_is_published_by_whoever_finishes_and_recorded_once(
    alice: User, gateway: Gateway, connections_file: Path
) -> None:
    parameters = connection.get_connection_params()
    place, login = own_database()
    attempt, outlet = two_days(alice, gateway, place)
    plain = f"{attempt.run.pk}_{attempt.row.name_on_disk}".replace("-", "_")
    address = {
        "host": parameters["host"],
        "port": parameters["port"],
        "dbname": parameters["dbname"],
    }
    with psycopg.connect(**address, **login, autocommit=True) as shop:
        shop.execute("CREATE SCHEMA shop")
        try:
            shop.execute(f'CREATE TABLE shop."_slicewise_{plain}" ("partition" text, n int)')
            shop.execute(f"INSERT INTO shop.\"_slicewise_{plain}\" VALUES ('2013-01-01', 7)")
            assert intend_to_publish(attempt.row, [outlet])
            connections_file.write_text("{")  # while somebody writes it
            publishing.publish(attempt.row, [outlet])
            assert Run.objects.get().state == RunState.PUBLISHING
            connections_file.write_text(json.dumps({place: login}))
            lose_the_worker()
            recover()
            with patch.object(publishing, "current", lambda: at_work(gateway)):
                publishing.finish_publishing(attempt.row.pk, str(RunAttempt.objects.get().token))
            assert shop.execute("SELECT * FROM shop.sales").fetchall() == [("2013-01-01", 7)]
        finally:
            shop.execute("DROP SCHEMA shop CASCADE")
    assert Run.objects.get().state == RunState.SUCCEEDED
    assert set(AssetPartition.objects.values_list("state", flat=True)) == {"materialized"}


@pytest.mark.parametrize(
    ("libpq", "reason"),
    [
        ({"sslmod": "require"}, 'invalid connection option "sslmod"'),
        ({"connect_timeout": "soon"}, "connect_timeout"),
    ],
)
def test_a_connection_that_is_written_wrongly_ends_the_run_and_says_so(
    alice: User, gateway: Gateway, connections_file: Path, libpq: dict[str, str], reason: str
) -> None:
    place, login = own_database()
    attempt, outlet = two_days(alice, gateway, place)
    connections_file.write_text(json.dumps({place: {**login, "libpq": libpq}}))
    assert intend_to_publish(attempt.row, [outlet])
    publishing.publish(attempt.row, [outlet])
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert reason in run.error
    assert login["password"] not in run.error
