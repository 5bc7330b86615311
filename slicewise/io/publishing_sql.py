"""The statements of a worker in the database of a ``postgres:`` asset, in one transaction."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from slicewise.io.columns_sql import Kind, kinds_of
from slicewise.io.publication_markers import PublicationMarkers
from slicewise.io.session_sql import Table, open_session
from slicewise.io.staged_tables import (
    fence_of,
    single_partition_table,
    staged_pattern,
    staged_suffix,
    staging_table,
    texts_of,
)
from slicewise.io.statements_sql import Statements
from slicewise.storage.layout import UNPARTITIONED
from slicewise.storage.storage_errors import StagingLostError, StorageError, TryAgainError

if TYPE_CHECKING:
    from psycopg.sql import Composed


class Tables:
    """The tables of one asset for one attempt; a context that ends the connection.

    An error that may pass by itself is a TryAgainError: no connection, a lock of another session.
    """

    def __init__(
        self, table: Table, connection: Mapping[str, Any], attempt: str, fence: int = 1
    ) -> None:
        self._table, self._facts, self._attempt = table, connection, attempt
        self._fence = fence

    def __enter__(self) -> Self:
        name = f"{self._session_name} {self._fence}"
        self._connection = open_session(self._table, self._facts, name)
        self._sql = Statements(self._table, self._connection)
        self._markers = PublicationMarkers(self._table, self._sql)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        import psycopg

        self._connection.close()
        if isinstance(error, psycopg.OperationalError):
            raise TryAgainError(f"{self._table.server}: {error}") from error
        if isinstance(error, psycopg.Error):
            raise StorageError(f"{self._table}: {str(error).strip()}") from error

    def take_over(self) -> None:
        """Rename the tables of the attempt's staged rows to this fencing number, so that earlier
        holders of the attempt no longer find the tables.

        Raises StagingLostError if a table has a higher number.
        """
        self._end_earlier_sessions()
        with self._connection.transaction():
            self._lock()
            tables = self._staged()
            for name, number in sorted(tables.items(), key=lambda item: -item[1]):
                if number > self._fence:
                    raise StagingLostError(
                        f"another worker has taken over the staged data: {self._table.beside(name)}"
                    )
                own_table = staging_table(self._attempt, self._fence) + staged_suffix(
                    name, self._attempt
                )
                if name == own_table:
                    continue
                if self._sql.has(
                    own_table
                ):  # created again by a write that went on under its old name
                    self.drop(name)
                else:
                    self._sql.run(
                        "ALTER TABLE {} RENAME TO {}",
                        self._sql.named(name),
                        self._sql.plain(own_table),
                    )

    def _end_earlier_sessions(self) -> None:
        """End the sessions of earlier holders of the attempt, with their open transactions.

        A session with a higher number belongs to a worker that has taken the attempt over from
        here.
        """
        self._connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND usename = current_user AND (application_name = %s"
            " OR starts_with(application_name, %s)"
            " AND substring(application_name FROM ' ([0-9]{1,9})$')::int < %s)",
            [self._session_name, f"{self._session_name} ", self._fence],
        )

    def _staged(self) -> dict[str, int]:
        """Return the tables of the attempt's staged rows, with the tables' fencing numbers."""
        rows = self._connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ %s",
            [self._table.schema, staged_pattern(self._attempt)],
        ).fetchall()
        return {name: fence_of(name) for (name,) in rows}

    def publish(
        self, staging: str, paths: Sequence[str], *, adds: bool, earlier: Sequence[str]
    ) -> None:
        """Move staged rows to the asset's table, all partitions at once, unless that is done.

        With ``adds`` the present rows stay, and rows that an ``earlier`` attempt at the same run
        has added are not added again.
        """
        self._markers.make_table()
        with self._connection.transaction():
            self._lock()
            # Instants are UTC in columns without a zone too, whatever zone the server, its user or
            # the environment of this process is in.
            self._sql.run("SET LOCAL TimeZone TO 'UTC'")
            published_paths = self.published(paths)
            unpublished_paths = [path for path in paths if path not in published_paths]
            if not unpublished_paths:
                return
            waiting = self.waiting(staging, unpublished_paths)
            self._make_table(list(waiting), unpublished_paths)
            added_earlier = (
                self._markers.published_by(unpublished_paths, earlier) if adds else set()
            )
            new_paths = [path for path in unpublished_paths if path not in added_earlier]
            if not adds:
                self._remove(new_paths)
            for name in waiting:
                self._insert(name, new_paths)
                self._sql.run("DROP TABLE {}", self._sql.named(name))
            self._mark(unpublished_paths, adds=adds)

    def check(self, staging: str, paths: Sequence[str]) -> None:
        """Raise StagingLostError if a partition is neither published nor staged."""
        published_paths = self.published(paths)
        if unpublished_paths := [path for path in paths if path not in published_paths]:
            self.waiting(staging, unpublished_paths)

    def published(self, paths: Sequence[str]) -> set[str]:
        """Return the partitions that this attempt has published."""
        return self._markers.published_by(paths, [self._attempt])

    def waiting(self, staging: str, paths: Sequence[str]) -> dict[str, list[str]]:
        """Return the tables of staged partitions, with the partitions. Raises StagingLostError."""
        names = {staging: list(paths)} if self._sql.has(staging) else {}
        for path in () if names else paths:
            single_table = single_partition_table(staging, path)
            if not self._sql.has(single_table):
                raise StagingLostError(
                    f"{self._table} {path} was not published, and the staged data is missing"
                )
            names[single_table] = [path]
        return names

    def row_counts(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the numbers of rows of partitions that have rows, by path."""
        from psycopg import sql

        if not paths or not self._sql.has(self._table.name):
            return {}
        condition, values = self._within(paths)
        names = sql.SQL(", ").join(map(sql.Identifier, texts_of(paths[0])))
        table = self._sql.named(self._table.name)
        if list(paths) == [UNPARTITIONED]:
            row = self._sql.run("SELECT count(*) FROM {}", table).fetchone()
            return {UNPARTITIONED: int(row[0])}
        rows = self._sql.run(
            "SELECT count(*), {0} FROM {1}{2} GROUP BY {0}", names, table, condition, values=values
        )
        by_texts = {tuple(texts): int(count) for count, *texts in rows.fetchall()}
        return {path: by_texts.get(tuple(texts_of(path).values()), 0) for path in paths}

    def remove(self, attempts: Mapping[str, Sequence[str]]) -> list[str]:
        """Remove the rows of partitions that one of the given attempts has published last; return
        the partitions with rows of another origin.
        """
        with self._connection.transaction():
            self._lock()
            counts = self.row_counts(list(attempts))
            makers = self._markers.latest(list(attempts))
            removed = [
                path
                for path, recorded_attempts in attempts.items()
                if makers.get(path) in recorded_attempts
            ]
            if removed and self._sql.has(self._table.name):
                self._remove(removed)
            if removed:
                self._markers.remove(removed)
        return [path for path in attempts if counts.get(path) and path not in removed]

    def columns(self, name: str) -> dict[str, str]:
        """Return the columns of a table of the schema, with types."""
        return {column: kind.declared for column, kind in self._kinds(name).items()}

    def discard(self) -> None:
        """Remove the tables of the attempt's staged rows, whichever worker holds the attempt."""
        for name in self._staged():
            self.drop(name)

    def drop(self, name: str) -> None:
        """Remove a table of staged rows, or do nothing if there is none."""
        self._sql.run("DROP TABLE IF EXISTS {}", self._sql.named(name))

    @property
    def _session_name(self) -> str:
        return f"slicewise {self._attempt}"[:50]

    def _lock(self) -> None:
        """Wait for the lock by which publications of one table go one after the other."""
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"slicewise {self._table}"]
        )

    def _make_table(self, waiting: Sequence[str], paths: Sequence[str]) -> None:
        """Create the asset's table, if there is none, with the columns of the first staged table.
        The other staged tables are checked against that table as against an older one.
        """
        if not self._sql.has(self._table.name):
            like = self._sql.named(waiting[0])
            self._sql.run("CREATE TABLE {} (LIKE {})", self._sql.named(self._table.name), like)
            self._make_index(list(texts_of(paths[0])))
        self._refuse_other_columns(waiting, paths)

    def _make_index(self, names: Sequence[str]) -> None:
        from psycopg import sql

        if names:
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            self._sql.run("CREATE INDEX ON {} ({})", self._sql.named(self._table.name), columns)

    def _refuse_other_columns(self, waiting: Sequence[str], paths: Sequence[str]) -> None:
        table_kinds = self._kinds(self._table.name)
        for staged_kinds in map(self._kinds, waiting):
            if missing := [name for name in staged_kinds if name not in table_kinds]:
                raise StorageError(
                    f"{self._table} has no column {missing[0]!r}, which the frame has"
                )
        for name in texts_of(paths[0]):
            if table_kinds[name].plain not in ("text", "character varying"):
                raise StorageError(
                    f"the column {name!r} of {self._table} is of type"
                    f" {table_kinds[name].declared}; the texts of partition keys need a column of"
                    " texts"
                )

    def _kinds(self, name: str) -> dict[str, Kind]:
        return kinds_of(self._connection, self._table.beside(name))

    def _remove(self, paths: Sequence[str]) -> None:
        condition, values = self._within(paths)
        self._sql.run(
            "DELETE FROM {}{}", self._sql.named(self._table.name), condition, values=values
        )

    def _insert(self, name: str, paths: Sequence[str]) -> None:
        from psycopg import sql

        if not paths:
            return
        table_kinds, columns = self._kinds(self._table.name), list(self._kinds(name))
        # For jsonb, uuid and other types, to which an assignment converts no text. The length is
        # left to the assignment: it refuses a text that is too long, a cast cuts it off silently.
        casts = [
            sql.SQL("{}::{}").format(sql.Identifier(column), sql.SQL(table_kinds[column].plain))
            for column in columns
        ]
        condition, values = self._within(paths)
        self._sql.run(
            "INSERT INTO {} ({}) SELECT {} FROM {}{}",
            self._sql.named(self._table.name),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(casts),
            self._sql.named(name),
            condition,
            values=values,
        )

    def _mark(self, paths: Sequence[str], *, adds: bool) -> None:
        self._markers.add(paths, self._attempt, beside_earlier=adds)

    def _within(self, paths: Sequence[str]) -> "tuple[Composed, list[Any]]":
        """Return (condition, values) for the rows of these partitions."""
        from psycopg import sql

        if list(paths) == [UNPARTITIONED]:
            return sql.SQL("").format(), []
        values = [texts_of(path) for path in paths]
        names = list(values[0])
        arrays = sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(names))
        condition = sql.SQL(" WHERE ({}) IN (SELECT * FROM unnest({}))").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), arrays
        )
        return condition, [[texts[name] for texts in values] for name in names]
