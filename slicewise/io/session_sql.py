"""Connections of workers to the database of a ``postgres:`` asset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slicewise.storage.storage_errors import StorageError, TryAgainError

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE = "10s"
_CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Table:
    """A table, and the server with the table."""

    host: str
    port: int
    database: str
    schema: str
    name: str

    def __str__(self) -> str:
        return self.beside(self.name)

    @property
    def server(self) -> str:
        """Host, port and database."""
        return f"{self.host}:{self.port}/{self.database}"

    def beside(self, name: str) -> str:
        """Return the name of another table of the schema, in SQL."""
        return ".".join(
            '"' + identifier.replace('"', '""') + '"' for identifier in (self.schema, name)
        )


def open_session(table: Table, facts: Mapping[str, Any], name: str) -> "Connection[Any]":
    """Return a session with this name on the table's server, without a transaction.

    ``facts`` are the gateway's settings for the location. Raises TryAgainError if the server does
    not answer or refuses the login, StorageError for options that libpq does not understand.
    """
    import psycopg

    try:
        return psycopg.connect(**_parameters(table, facts, name))
    except psycopg.OperationalError as error:
        raise TryAgainError(f"{table.server}: {error}") from error
    except psycopg.Error as error:
        raise StorageError(f"{table.server}: {str(error).strip()}") from error


def _parameters(table: Table, facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the parameters of a session: the gateway's settings override the defaults, but not the
    options that publishing needs.
    """
    libpq_options = dict(facts.get("libpq") or {})
    return {
        "host": table.host,
        "port": table.port,
        "dbname": table.database,
        "user": facts.get("user"),
        "password": facts.get("password"),
        "connect_timeout": _CONNECT_SECONDS,
        **libpq_options,
        "options": f"-c lock_timeout={_PATIENCE} {libpq_options.get('options') or ''}".rstrip(),
        "application_name": name,  # by which a worker that takes over finds the session
        "autocommit": True,
    }
