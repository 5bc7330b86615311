"""A schema of PostgreSQL, in which tests stage rows as runs do."""

from collections.abc import Sequence
from threading import Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import psycopg

from slicewise.io import StorageLocation, Writer, storage_at
from slicewise.io.staged_tables import single_partition_table

PATHS = {"mon": "day=mon", "tue": "day=tue"}


class Shop:
    """The schema, and writes to assets in the schema: to `sales`, unless a call names another
    table.
    """

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self.database = psycopg.connect(address, autocommit=True)
        self.database.execute("DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop")
        self.server = f"postgres://{url.hostname}:{url.port}{url.path}"
        self.uri = f"{self.server}/shop/sales"
        self.connection: dict[str, Any] = {"user": url.username, "password": url.password}

    def storage(self, mode: Any = "replace", *, table: str = "") -> Any:
        uri = f"{self.server}/shop/{table}" if table else self.uri
        return storage_at(StorageLocation(uri=uri, write_mode=mode, connection=self.connection))

    def stage(
        self,
        run_id: int,
        rows: Sequence[tuple[Any, ...]],
        attempt: str = "1-a",
        *,
        columns: str = "day text, n int",
        separate_key: str = "",
    ) -> Writer:
        """Stage rows; ``separate_key`` names a key whose rows are staged by themselves."""
        writer = Writer(run_id=run_id, attempt=attempt)
        name = self.storage().staging(writer, partitioned=True)
        if separate_key:
            name = single_partition_table(name, PATHS[separate_key])
        self.database.execute(f'CREATE TABLE shop."{name}" ({columns})')
        for row in rows:
            values = ", ".join(["%s"] * len(row))
            self.database.execute(f'INSERT INTO shop."{name}" VALUES ({values})', row)
        return writer

    def publish(self, writer: Writer, *keys: str, mode: str = "replace", table: str = "") -> None:
        pieces = [{"key": key, "path": PATHS[key]} for key in keys]
        self.storage(mode, table=table).publish("", pieces, writer)

    def write(
        self, run_id: int, rows: Sequence[tuple[Any, ...]], *keys: str, **more: Any
    ) -> Writer:
        writer = self.stage(run_id, rows)
        self.publish(writer, *keys, **more)
        return writer

    def rows(self, columns: str = "day, n", table: str = "sales") -> list[tuple[Any, ...]]:
        return sorted(self.database.execute(f"SELECT {columns} FROM shop.{table}").fetchall())

    def wait_for_locks(self, sessions: int) -> None:
        """Wait until so many sessions wait for a lock."""
        waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
        until = monotonic() + 60
        while self.database.execute(waiting).fetchone() != (sessions,):
            assert monotonic() < until, "nobody waits for a lock"
            sleep(0.02)

    def wait_for_end_or_lock(self, worker: Thread) -> None:
        """Wait until a worker has ended, or a session waits for a lock of another session."""
        waiting = "SELECT FROM pg_locks WHERE NOT granted"
        until = monotonic() + 60
        while worker.is_alive() and not self.database.execute(waiting).fetchall():
            assert monotonic() < until, "the worker neither ends nor waits for a lock"
            sleep(0.01)

    def tables(self) -> set[str]:
        cursor = self.database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'shop'")
        return {name for (name,) in cursor}
