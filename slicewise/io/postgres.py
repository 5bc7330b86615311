"""``postgres:`` URIs: a table in which a run replaces its own partitions in one transaction.

The runner has Spark write the rows to a table of the attempt, by JDBC; the worker moves the rows to
the asset's table. A row of `_slicewise_published` names the attempt that a partition is from.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from slicewise.io.base import Measured, Session, Staged, Storage, Writer
from slicewise.io.frames import (
    Frame,
    RowsError,
    lacks_dimension_columns,
    outside_sentence,
    text_columns,
)
from slicewise.io.publishing_sql import Tables
from slicewise.io.reading_sql import TablePartitions, quoted, select_from_tables, select_within
from slicewise.io.session_sql import Table
from slicewise.io.staged_tables import single_partition_table, staging_table, texts_of
from slicewise.keys.column_texts import column_text, dimension_keys
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage.removing import WRITTEN_SINCE
from slicewise.storage.storage_errors import StorageError, TryAgainError

_DRIVER = "org.postgresql.Driver"


class PostgresStorage(Storage, kind="postgres"):
    """A table with a column of texts for each dimension; a run's partitions appear at once."""

    write_modes = ("replace", "append")

    @property
    def table(self) -> Table:
        """The asset's table. Raises ValueError for a URI that names no table."""
        split_uri = urlsplit(self.location.uri)
        names = [unquote(name) for name in split_uri.path.strip("/").split("/")]
        if len(names) != 3 or not all(names) or not split_uri.hostname:
            raise ValueError(
                f"{self.location.uri!r} names no table; write postgres://host/database/schema/table"
            )
        database, schema, name = names
        return Table(split_uri.hostname, split_uri.port or 5432, database, schema, name)

    @property
    def is_remote(self) -> bool:
        return True

    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        return staging_table(_attempt(writer, writer.attempt), writer.fence)

    def stage(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        single_partition: bool,
    ) -> list[Staged]:
        lacks_dimension_columns(frame, definition, keys)  # raises where a column is missing
        texts = text_columns(frame, definition, keys) if definition is not None else {}
        name = self.staging(writer, partitioned=definition is not None)
        if single_partition:
            name = single_partition_table(name, key_folder(definition, keys[0]))
        options = {**self._options(), "dbtable": self.table.beside(name)}
        ready = frame.withColumns(texts) if texts else frame
        try:
            ready.write.format("jdbc").options(**options).mode("overwrite").save()
            return self._staged(frame, definition, keys, texts, name)
        except BaseException as error:
            self._drop(name, error)
            raise

    def _staged(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        texts: Mapping[str, Any],
        name: str,
    ) -> list[Staged]:
        """Return the staged partitions. Raises RowsError."""
        sizes = self._seen(frame.sparkSession, name, list(texts))
        expected = {_texts(key) if texts else (): key for key in keys}
        unexpected = [row_texts for row_texts in sizes if row_texts not in expected]
        if unexpected:
            values = [dict(zip(texts, row_texts, strict=True)) for row_texts in unexpected]
            rows = sum(sizes[row_texts][0] for row_texts in unexpected)
            raise RowsError(outside_sentence(rows, values, frame, texts, len(keys)))
        return [
            Staged(key.text, key_folder(definition, key), *sizes.get(row_texts, (0, 0)))
            for row_texts, key in expected.items()
        ]

    def _drop(self, name: str, reason: BaseException) -> None:
        """Drop the table of refused rows: a function may catch the error, and write other rows."""
        try:
            with Tables(self.table, self.location.connection, name) as tables:
                tables.drop(name)
        except (StorageError, TryAgainError) as error:
            raise error from reason

    def read(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Frame:
        partitions = [texts_of(key_folder(definition, key)) for key in keys]
        return self._query(session, select_within(str(self.table), partitions))

    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        name = self.staging(writer, partitioned=definition is not None)
        with Tables(self.table, self.location.connection, name) as tables:
            table_selections = [
                TablePartitions(
                    self.table.beside(table_name),
                    tables.columns(table_name),
                    list(map(texts_of, paths)),
                )
                for table_name, paths in tables.waiting(
                    name, [partition.path for partition in staged]
                ).items()
            ]
        return self._query(session, select_from_tables(table_selections))

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        with self._tables(writer) as tables:
            if writer.fence > 1:
                tables.take_over()
            tables.check(self.staging(writer, partitioned=True), _paths(partitions))

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        with self._tables(writer) as tables:
            if writer.fence > 1:
                tables.take_over()
            tables.publish(
                self.staging(writer, partitioned=True),
                _paths(partitions),
                adds=self.location.write_mode == "append",
                earlier=[_attempt(writer, earlier_attempt) for earlier_attempt in writer.earlier],
            )
        return {}

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        with self._tables(writer) as tables:
            published_paths = tables.published(paths)
        return [path for path in paths if path in published_paths]

    def discard(self, writer: Writer) -> None:
        with self._tables(writer) as tables:
            tables.discard()

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None]:
        with Tables(self.table, self.location.connection, "measure") as tables:
            counts = tables.row_counts(paths)
        return {path: Measured(rows=counts.get(path, 0)) for path in paths}

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        attempts = {
            path: [_attempt(writer, writer.attempt) for writer in path_writers]
            for path, path_writers in writers.items()
        }
        with Tables(self.table, self.location.connection, "remove") as tables:
            kept_paths = tables.remove(attempts)
        return dict.fromkeys(kept_paths, WRITTEN_SINCE)

    def _tables(self, writer: Writer) -> Tables:
        attempt = _attempt(writer, writer.attempt)
        return Tables(self.table, self.location.connection, attempt, writer.fence)

    def _options(self) -> dict[str, str]:
        connection = self.location.connection
        if not connection.get("user"):
            raise ValueError(
                f"no user of {self.table.server} is known for {self.location.asset or 'this run'}: "
                "write a user into the file that SLICEWISE_CONNECTIONS names"
            )
        return {
            **{name: str(value) for name, value in (connection.get("jdbc") or {}).items()},
            "url": f"jdbc:postgresql://{self.table.server}",
            "driver": _DRIVER,
            "user": str(connection["user"]),
            "password": str(connection.get("password", "")),
        }

    def _query(self, session: Session, query: str) -> Frame:
        # One connection and one statement: the read sees one state of the table.
        return session.read.format("jdbc").options(**self._options(), query=query).load()

    def _seen(
        self, session: Session, name: str, columns: Sequence[str]
    ) -> dict[tuple[str | None, ...], tuple[int, int]]:
        """Return (rows, bytes) of the staged data, by the texts of the dimensions."""
        listed = "".join(f"{quoted(column)}, " for column in columns)
        group = f" GROUP BY {listed.removesuffix(', ')}" if columns else ""
        measured = "count(*) AS rows, coalesce(sum(pg_column_size(one)), 0)::bigint AS bytes"
        query = " ".join(
            ["SELECT", listed, measured, "FROM", self.table.beside(name), "AS one", group]
        )
        rows = self._query(session, query).collect()
        return {tuple(row[: len(columns)]): (row["rows"], row["bytes"]) for row in rows}


def _texts(key: PartitionKey) -> tuple[str, ...]:
    return tuple(column_text(component) for component in dimension_keys(key))


def _paths(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(partition["path"]) for partition in partitions]


def _attempt(writer: Writer, attempt: str) -> str:
    return f"{writer.run_id}-{attempt}"
