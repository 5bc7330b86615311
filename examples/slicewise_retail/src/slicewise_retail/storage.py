"""Data of points of sale: `pos://berlin-mitte/till-3` is a table of a SQLite file of the shop's.

Rows travel through the driver, as suits the day of a till. Where the files lie is the gateway's to
say, in its file of connections: `{"pos://berlin-mitte": {"folder": "/shops"}}`.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from slicewise import PartitionDefinition, PartitionKey
from slicewise.io import Staged, Storage, Writer
from slicewise.storage import StagingLostError, TryAgainError

# What is sold, what waits to be, and which attempt made what is there.
_TABLES = """
CREATE TABLE IF NOT EXISTS sold (till, partition, row);
CREATE TABLE IF NOT EXISTS staged (till, partition, row, attempt);
CREATE TABLE IF NOT EXISTS waiting (till, partition, attempt, schema);
CREATE TABLE IF NOT EXISTS made (till, partition, attempt, schema, PRIMARY KEY (till, partition));
"""


class PointOfSale(Storage, kind="pos"):
    """One partition of one till is replaced in one transaction."""

    @classmethod
    def partition_path(cls, definition: PartitionDefinition | None, key: PartitionKey) -> str:
        return key.text or "."

    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        return _name(writer)

    def stage(
        self,
        frame: Any,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        single_partition: bool,
    ) -> list[Staged]:
        if len(keys) != 1:
            raise ValueError('a till takes one partition at a time: strategy="partition"')
        (key,) = keys
        rows = [json.dumps(row.asDict(), default=str) for row in frame.collect()]
        till, attempt = self._till, _name(writer)
        with self._shop() as shop:
            shop.executemany(
                "INSERT INTO staged VALUES (?, ?, ?, ?)",
                [(till, key.text, row, attempt) for row in rows],
            )
            shop.execute(
                "INSERT INTO waiting VALUES (?, ?, ?, ?)",
                (till, key.text, attempt, frame.schema.simpleString()),
            )
        path = self.partition_path(definition, key)
        return [Staged(key.text, path, len(rows), sum(map(len, rows)))]

    def read(
        self,
        session: Any,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Any:
        wanted = (self._till, json.dumps([key.text for key in keys]))
        with self._shop() as shop:
            rows = shop.execute(
                "SELECT row FROM sold"
                " WHERE till = ? AND partition IN (SELECT value FROM json_each(?))",
                wanted,
            ).fetchall()
            (schema,) = shop.execute(
                "SELECT schema FROM made"
                " WHERE till = ? AND partition IN (SELECT value FROM json_each(?)) LIMIT 1",
                wanted,
            ).fetchone()
        return _frame(session, rows, schema)

    def read_staged(
        self,
        session: Any,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Any:
        waits = (self._till, _name(writer))
        with self._shop() as shop:
            rows = shop.execute(
                "SELECT row FROM staged WHERE till = ? AND attempt = ?", waits
            ).fetchall()
            (schema,) = shop.execute(
                "SELECT schema FROM waiting WHERE till = ? AND attempt = ?", waits
            ).fetchone()
        return _frame(session, rows, schema)

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        till, attempt = self._till, _name(writer)
        with self._shop() as shop:
            for key in (piece["key"] for piece in partitions):
                if self._is_made(shop, key, attempt):
                    continue  # by this attempt, before
                waits = (till, key, attempt)
                schema = shop.execute(
                    "DELETE FROM waiting WHERE till = ? AND partition = ? AND attempt = ?"
                    " RETURNING schema",
                    waits,
                ).fetchone()
                if schema is None:  # it was published and replaced since, or discarded
                    raise StagingLostError(f"nothing of {till} {key} waits to be published")
                shop.execute("DELETE FROM sold WHERE till = ? AND partition = ?", (till, key))
                shop.execute(
                    "INSERT INTO sold SELECT till, partition, row FROM staged"
                    " WHERE till = ? AND partition = ? AND attempt = ?",
                    waits,
                )
                shop.execute("INSERT OR REPLACE INTO made VALUES (?, ?, ?, ?)", (*waits, *schema))
            shop.execute("DELETE FROM staged WHERE till = ? AND attempt = ?", (till, attempt))
        return {}

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        with self._shop() as shop:
            keys = {path: "" if path == "." else path for path in paths}
            return [p for p, key in keys.items() if self._is_made(shop, key, _name(writer))]

    def discard(self, writer: Writer) -> None:
        with self._shop() as shop:
            waits = (self._till, _name(writer))
            shop.execute("DELETE FROM staged WHERE till = ? AND attempt = ?", waits)
            shop.execute("DELETE FROM waiting WHERE till = ? AND attempt = ?", waits)

    @property
    def _till(self) -> str:
        return unquote(urlsplit(self.location.uri).path.strip("/"))

    @contextmanager
    def _shop(self) -> Iterator[sqlite3.Connection]:
        """The shop's file, in one transaction, which readers and other writers wait for."""
        folder = Path(self.location.connection.get("folder", "/var/lib/tills"))
        file = folder / f"{urlsplit(self.location.uri).netloc}.sqlite3"
        try:
            with closing(sqlite3.connect(file, timeout=5, isolation_level=None)) as shop:
                shop.executescript(_TABLES)
                shop.execute("BEGIN IMMEDIATE")
                yield shop
                shop.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise TryAgainError(f"{file}: {error}") from error

    def _is_made(self, shop: sqlite3.Connection, key: str, attempt: str) -> bool:
        row = shop.execute(
            "SELECT attempt FROM made WHERE till = ? AND partition = ?", (self._till, key)
        ).fetchone()
        return row is not None and row[0] == attempt


def _name(writer: Writer) -> str:
    return f"{writer.run_id}-{writer.attempt}"


def _frame(session: Any, rows: Sequence[tuple[str]], schema: str) -> Any:
    from pyspark.sql import functions

    texts = session.createDataFrame(rows, "row string")
    return texts.select(functions.from_json("row", schema).alias("row")).select("row.*")
