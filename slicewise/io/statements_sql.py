"""Statements about the tables of one schema, in the session of a worker."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slicewise.io.session_sql import Table

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier


class Statements:
    """Statements with the names of tables beside an asset's table."""

    def __init__(self, table: Table, connection: "Connection[Any]") -> None:
        self._table, self._connection = table, connection

    def has(self, name: str) -> bool:
        """Return whether the schema has a table."""
        row = self._connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL", [self._table.beside(name)]
        ).fetchone()
        return bool(row and row[0])

    def named(self, name: str) -> "Identifier":
        """Return the name of a table with the schema."""
        from psycopg import sql

        return sql.Identifier(self._table.schema, name)

    def plain(self, name: str) -> "Identifier":
        """Return the name of a table without the schema."""
        from psycopg import sql

        return sql.Identifier(name)

    def run(self, statement: str, *fragments: Any, values: Sequence[Any] | None = None) -> Any:
        """Execute a statement; `fragments` stand for its braces, `values` for its `%s`."""
        from psycopg import sql

        return self._connection.execute(sql.SQL(statement).format(*fragments), values)
