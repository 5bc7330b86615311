"""A worker's way to the database of a ``postgres:`` asset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slicewise.storage.errors import StorageError, TryAgainError

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE = "10s"
_CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Table:
    """A table, and the server that it is on."""

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
        """Another table of the schema, as SQL names it."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, name))


def open_session(table: Table, facts: Mapping[str, Any], name: str) -> "Connection[Any]":
    """Return a session of that name on the table's server, without a transaction.

    ``facts`` are what the gateway knows of the place. Raises TryAgainError where the server does
    not answer or lets nobody in, StorageError for what libpq does not understand.
    """
    import psycopg

    try:
        return psycopg.connect(**_parameters(table, facts, name))
    except psycopg.OperationalError as error:
        raise TryAgainError(f"{table.server}: {error}") from error
    except psycopg.Error as error:
        raise StorageError(f"{table.server}: {str(error).strip()}") from error


def _parameters(table: Table, facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What the gateway says goes before what is usual, but not before what publishing needs."""
    own = dict(facts.get("libpq") or {})
    return {
        "host": table.host,
        "port": table.port,
        "dbname": table.database,
        "user": facts.get("user"),
        "password": facts.get("password"),
        "connect_timeout": _CONNECT_SECONDS,
        **own,
        "options": f"-c lock_timeout={_PATIENCE} {own.get('options') or ''}".rstrip(),
        "application_name": name,  # by which whoever takes over finds it
        "autocommit": True,
    }
