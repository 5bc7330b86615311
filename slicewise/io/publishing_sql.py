"""What a worker does in the database of a ``postgres:`` asset, in one transaction."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from slicewise.io.columns_sql import Kind, kinds_of
from slicewise.io.session_sql import Table, open_session
from slicewise.storage.errors import StagingLostError, StorageError, TryAgainError
from slicewise.storage.layout import UNPARTITIONED, unescape

if TYPE_CHECKING:
    from psycopg.sql import Composed, Identifier

_MARKERS = "_slicewise_published"
_STAGED = "_slicewise"


class Tables:
    """The tables of one asset as one attempt finds them; a context that ends the connection.

    Whatever may pass by itself is a TryAgainError: no connection, a lock that somebody holds.
    """

    def __init__(
        self, table: Table, connection: Mapping[str, Any], attempt: str, fence: int = 1
    ) -> None:
        self._table, self._facts, self._attempt = table, connection, attempt
        self._fence = fence

    def __enter__(self) -> Self:
        name = f"{self._session_name} {self._fence}"
        self._connection = open_session(self._table, self._facts, name)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        import psycopg

        self._connection.close()
        if isinstance(error, psycopg.OperationalError):
            raise TryAgainError(f"{self._table.server}: {error}") from error
        if isinstance(error, psycopg.Error):
            raise StorageError(f"{self._table}: {str(error).strip()}") from error

    def take_over(self) -> None:
        """Have the tables in which the attempt's rows wait bear this fencing number, by which
        whoever held the attempt before does not find them any more.

        Raises StagingLostError where they bear a higher one.
        """
        self._end_earlier_sessions()
        with self._connection.transaction():
            self._lock()
            tables = self._staged()
            for name, number in sorted(tables.items(), key=lambda item: -item[1]):
                if number > self._fence:
                    raise StagingLostError(
                        f"another worker has taken over what was staged: {self._table.beside(name)}"
                    )
                mine = staging_table(self._attempt, self._fence) + _suffix(name, self._attempt)
                if name == mine:
                    continue
                if self._has(mine):  # made anew by a write that went on under its old name
                    self.drop(name)
                else:
                    self._run("ALTER TABLE {} RENAME TO {}", self._named(name), self._plain(mine))

    def _end_earlier_sessions(self) -> None:
        """End the sessions of whoever held the attempt before: what they have begun is undone.

        A session with a higher number is of somebody who has taken the attempt over from here.
        """
        self._connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND usename = current_user AND (application_name = %s"
            " OR starts_with(application_name, %s)"
            " AND substring(application_name FROM ' ([0-9]{1,9})$')::int < %s)",
            [self._session_name, f"{self._session_name} ", self._fence],
        )

    def _staged(self) -> dict[str, int]:
        """Return the tables in which the attempt's rows wait, with their fencing numbers."""
        rows = self._connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ %s",
            [self._table.schema, _staged_pattern(self._attempt)],
        ).fetchall()
        numbers = {name: name.removeprefix(_STAGED).partition("_")[0] for (name,) in rows}
        return {name: int(number or 1) for name, number in numbers.items()}

    def publish(
        self, staging: str, paths: Sequence[str], *, adds: bool, earlier: Sequence[str]
    ) -> None:
        """Move what waits to the asset's table, all of it at once; nothing if that is done.

        With ``adds`` the rows that are there stay, and what an ``earlier`` attempt at the same run
        has added is not added again.
        """
        self._make_markers()
        with self._connection.transaction():
            self._lock()
            # Instants are UTC in columns without a zone too, whatever zone the server, its user or
            # the environment of this process is in.
            self._run("SET LOCAL TimeZone TO 'UTC'")
            done = self.published(paths)
            todo = [path for path in paths if path not in done]
            if not todo:
                return
            waiting = self.waiting(staging, todo)
            self._make_table(list(waiting), todo)
            added = self._made_by(todo, earlier) if adds else set()
            fresh = [path for path in todo if path not in added]
            if not adds:
                self._remove(fresh)
            for name in waiting:
                self._insert(name, fresh)
                self._run("DROP TABLE {}", self._named(name))
            self._mark(todo, adds=adds)

    def check(self, staging: str, paths: Sequence[str]) -> None:
        """Raise StagingLostError where something is to be published and does not wait."""
        done = self.published(paths)
        if todo := [path for path in paths if path not in done]:
            self.waiting(staging, todo)

    def published(self, paths: Sequence[str]) -> set[str]:
        """Those of the partitions that are of this attempt."""
        return self._made_by(paths, [self._attempt])

    def waiting(self, staging: str, paths: Sequence[str]) -> dict[str, list[str]]:
        """The tables in which partitions wait, and which of them. Raises StagingLostError."""
        names = {staging: list(paths)} if self._has(staging) else {}
        for path in () if names else paths:
            apart = staged_apart(staging, path)
            if not self._has(apart):
                raise StagingLostError(
                    f"{self._table} {path} was not published, and what was staged is gone"
                )
            names[apart] = [path]
        return names

    def row_counts(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the numbers of rows of partitions that have some, by path."""
        from psycopg import sql

        if not paths or not self._has(self._table.name):
            return {}
        condition, values = self._within(paths)
        names = sql.SQL(", ").join(map(sql.Identifier, texts_of(paths[0])))
        table = self._named(self._table.name)
        if list(paths) == [UNPARTITIONED]:
            row = self._run("SELECT count(*) FROM {}", table).fetchone()
            return {UNPARTITIONED: int(row[0])}
        rows = self._run(
            "SELECT count(*), {0} FROM {1}{2} GROUP BY {0}", names, table, condition, values=values
        )
        by_texts = {tuple(texts): int(count) for count, *texts in rows.fetchall()}
        return {path: by_texts.get(tuple(texts_of(path).values()), 0) for path in paths}

    def remove(self, attempts: Mapping[str, Sequence[str]]) -> list[str]:
        """Remove the rows of partitions that one of their attempts has published last; return the
        partitions with rows of something else.
        """
        with self._connection.transaction():
            self._lock()
            counts = self.row_counts(list(attempts))
            makers = self._latest_makers(list(attempts))
            removed = [path for path, own in attempts.items() if makers.get(path) in own]
            if removed and self._has(self._table.name):
                self._remove(removed)
            if removed:
                self._unmark(removed)
        return [path for path in attempts if counts.get(path) and path not in removed]

    def _latest_makers(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the attempts that have published partitions last, by path."""
        if not self._has(_MARKERS):
            return {}
        rows = self._run(
            'SELECT DISTINCT ON ("partition") "partition", attempt FROM {} WHERE asset = %s'
            ' AND "partition" = ANY(%s) ORDER BY "partition", published_at DESC',
            self._named(_MARKERS),
            values=[self._table.name, list(paths)],
        )
        return dict(rows.fetchall())

    def columns(self, name: str) -> dict[str, str]:
        """Return the columns of a table of the schema, and their types."""
        return {column: kind.declared for column, kind in self._kinds(name).items()}

    def discard(self) -> None:
        """Remove the tables in which the attempt's rows wait, whoever holds it."""
        for name in self._staged():
            self.drop(name)

    def drop(self, name: str) -> None:
        """Remove a table in which rows wait, if it is there."""
        self._run("DROP TABLE IF EXISTS {}", self._named(name))

    @property
    def _session_name(self) -> str:
        return f"slicewise {self._attempt}"[:50]

    def _lock(self) -> None:
        """Publications of one table go one after the other."""
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"slicewise {self._table}"]
        )

    def _made_by(self, paths: Sequence[str], attempts: Sequence[str]) -> set[str]:
        if not attempts or not self._has(_MARKERS):
            return set()
        rows = self._run(
            'SELECT "partition" FROM {} WHERE asset = %s AND "partition" = ANY(%s)'
            " AND attempt = ANY(%s)",
            self._named(_MARKERS),
            values=[self._table.name, list(paths), list(attempts)],
        )
        return {path for (path,) in rows.fetchall()}

    def _make_markers(self) -> None:
        """Before the transaction in which rows are moved: as long as one has made the table and not
        committed it, the other assets of the schema wait.
        """
        from psycopg.errors import UniqueViolation

        if self._has(_MARKERS):
            return
        # IF NOT EXISTS sees none that is just being made. By the time that is said it is there.
        with suppress(UniqueViolation):
            self._run(
                "CREATE TABLE IF NOT EXISTS {} (asset text NOT NULL,"
                ' "partition" text NOT NULL, attempt text NOT NULL, published_at timestamptz'
                ' NOT NULL DEFAULT now(), PRIMARY KEY (asset, "partition", attempt))',
                self._named(_MARKERS),
            )

    def _make_table(self, waiting: Sequence[str], paths: Sequence[str]) -> None:
        """The asset's table, where it is not there, like the first that waits. The others are held
        against it as against one that is there.
        """
        if not self._has(self._table.name):
            like = self._named(waiting[0])
            self._run("CREATE TABLE {} (LIKE {})", self._named(self._table.name), like)
            self._make_index(list(texts_of(paths[0])))
        self._refuse_other_columns(waiting, paths)

    def _make_index(self, names: Sequence[str]) -> None:
        from psycopg import sql

        if names:
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            self._run("CREATE INDEX ON {} ({})", self._named(self._table.name), columns)

    def _refuse_other_columns(self, waiting: Sequence[str], paths: Sequence[str]) -> None:
        there = self._kinds(self._table.name)
        for own in map(self._kinds, waiting):
            if missing := [name for name in own if name not in there]:
                raise StorageError(
                    f"{self._table} has no column {missing[0]!r}, and the frame has one"
                )
        for name in texts_of(paths[0]):
            if there[name].plain not in ("text", "character varying"):
                raise StorageError(
                    f"the column {name!r} of {self._table} is of type {there[name].declared}; the"
                    " texts of partition keys need a column of texts"
                )

    def _kinds(self, name: str) -> dict[str, Kind]:
        return kinds_of(self._connection, self._table.beside(name))

    def _remove(self, paths: Sequence[str]) -> None:
        condition, values = self._within(paths)
        self._run("DELETE FROM {}{}", self._named(self._table.name), condition, values=values)

    def _insert(self, name: str, paths: Sequence[str]) -> None:
        from psycopg import sql

        if not paths:
            return
        there, own = self._kinds(self._table.name), list(self._kinds(name))
        # For jsonb, uuid and others that an assignment would not make of a text. The length is left
        # to the assignment: it refuses what is too long, which a cast cuts off without a word.
        casts = [
            sql.SQL("{}::{}").format(sql.Identifier(one), sql.SQL(there[one].plain)) for one in own
        ]
        condition, values = self._within(paths)
        self._run(
            "INSERT INTO {} ({}) SELECT {} FROM {}{}",
            self._named(self._table.name),
            sql.SQL(", ").join(map(sql.Identifier, own)),
            sql.SQL(", ").join(casts),
            self._named(name),
            condition,
            values=values,
        )

    def _mark(self, paths: Sequence[str], *, adds: bool) -> None:
        if not adds:
            self._unmark(paths)
        self._run(
            'INSERT INTO {} (asset, "partition", attempt) SELECT %s, unnest(%s::text[]), %s',
            self._named(_MARKERS),
            values=[self._table.name, list(paths), self._attempt],
        )

    def _unmark(self, paths: Sequence[str]) -> None:
        self._run(
            'DELETE FROM {} WHERE asset = %s AND "partition" = ANY(%s)',
            self._named(_MARKERS),
            values=[self._table.name, list(paths)],
        )

    def _within(self, paths: Sequence[str]) -> "tuple[Composed, list[Any]]":
        """The condition of being in one of these partitions."""
        from psycopg import sql

        if list(paths) == [UNPARTITIONED]:
            return sql.SQL("").format(), []
        values = [texts_of(path) for path in paths]
        names = list(values[0])
        arrays = sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(names))
        condition = sql.SQL(" WHERE ({}) IN (SELECT * FROM unnest({}))").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), arrays
        )
        return condition, [[one[name] for one in values] for name in names]

    def _has(self, name: str) -> bool:
        row = self._connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL", [self._table.beside(name)]
        ).fetchone()
        return bool(row and row[0])

    def _named(self, name: str) -> "Identifier":
        from psycopg import sql

        return sql.Identifier(self._table.schema, name)

    def _plain(self, name: str) -> "Identifier":
        from psycopg import sql

        return sql.Identifier(name)

    def _run(self, statement: str, *parts: Any, values: Sequence[Any] | None = None) -> Any:
        from psycopg import sql

        return self._connection.execute(sql.SQL(statement).format(*parts), values)


def staging_table(attempt: str, fence: int) -> str:
    """Return the name of the table in which the rows of an attempt wait for the holder of this
    fencing number.
    """
    return f"{_STAGED}{fence if fence > 1 else ''}_{_words(attempt)}"


def _staged_pattern(attempt: str) -> str:
    return rf"^{_STAGED}[0-9]*_{_words(attempt)}(_[0-9a-f]{{8}})?$"


def _suffix(name: str, attempt: str) -> str:
    """Return what the name of a table has more where one partition waits by itself."""
    return name.partition(f"_{_words(attempt)}")[2]


def _words(attempt: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in attempt)


def staged_apart(name: str, path: str) -> str:
    """Return the table in which one partition waits by itself."""
    return f"{name}_{sha256(path.encode()).hexdigest()[:8]}"


def texts_of(path: str) -> dict[str, str]:
    """Return the texts of the dimensions' columns that a partition's path stands for."""
    if path == UNPARTITIONED:
        return {}
    pairs = (part.partition("=") for part in path.split("/"))
    return {unescape(name): unescape(value) for name, _, value in pairs}
