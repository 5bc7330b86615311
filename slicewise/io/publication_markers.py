"""Which attempt published which partition of a ``postgres:`` asset: a table in the schema."""

from collections.abc import Sequence
from contextlib import suppress

from slicewise.io.session_sql import Table
from slicewise.io.statements_sql import Statements

_MARKERS = "_slicewise_published"


class PublicationMarkers:
    """The rows of one asset in the schema's table of publications."""

    def __init__(self, table: Table, statements: Statements) -> None:
        self._table, self._sql = table, statements

    def make_table(self) -> None:
        """Create the table of markers, before the transaction in which rows are moved: as long as
        one transaction has created the table and not committed, the other assets of the schema
        wait.
        """
        from psycopg.errors import DuplicateObject, DuplicateTable, UniqueViolation

        if self._sql.has(_MARKERS):
            return
        # IF NOT EXISTS does not see a table that another session is creating. Whichever of its
        # rows in the catalogs PostgreSQL meets first (table, row type, index), when the error comes
        # that table exists.
        with suppress(UniqueViolation, DuplicateTable, DuplicateObject):
            self._sql.run(
                "CREATE TABLE IF NOT EXISTS {} (asset text NOT NULL,"
                ' "partition" text NOT NULL, attempt text NOT NULL, published_at timestamptz'
                ' NOT NULL DEFAULT now(), PRIMARY KEY (asset, "partition", attempt))',
                self._sql.named(_MARKERS),
            )

    def published_by(self, paths: Sequence[str], attempts: Sequence[str]) -> set[str]:
        """Return the partitions that one of the attempts has published."""
        if not attempts or not self._sql.has(_MARKERS):
            return set()
        rows = self._sql.run(
            'SELECT "partition" FROM {} WHERE asset = %s AND "partition" = ANY(%s)'
            " AND attempt = ANY(%s)",
            self._sql.named(_MARKERS),
            values=[self._table.name, list(paths), list(attempts)],
        )
        return {path for (path,) in rows.fetchall()}

    def latest(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the attempts that published partitions last, by path."""
        if not self._sql.has(_MARKERS):
            return {}
        rows = self._sql.run(
            'SELECT DISTINCT ON ("partition") "partition", attempt FROM {} WHERE asset = %s'
            ' AND "partition" = ANY(%s) ORDER BY "partition", published_at DESC',
            self._sql.named(_MARKERS),
            values=[self._table.name, list(paths)],
        )
        return dict(rows.fetchall())

    def add(self, paths: Sequence[str], attempt: str, *, beside_earlier: bool) -> None:
        """Record an attempt as publisher, beside earlier attempts or in place of these."""
        if not beside_earlier:
            self.remove(paths)
        self._sql.run(
            'INSERT INTO {} (asset, "partition", attempt) SELECT %s, unnest(%s::text[]), %s',
            self._sql.named(_MARKERS),
            values=[self._table.name, list(paths), attempt],
        )

    def remove(self, paths: Sequence[str]) -> None:
        """Forget who has published partitions."""
        self._sql.run(
            'DELETE FROM {} WHERE asset = %s AND "partition" = ANY(%s)',
            self._sql.named(_MARKERS),
            values=[self._table.name, list(paths)],
        )
