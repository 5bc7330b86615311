"""Connections from a pool, each checked before use; Django finds this module by the name `base`.

Connections that idled in the pool during a restart of the server are dead. Django's own check tries
connection after connection, with pauses that double: a page would wait for seconds, or fail.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

# On a connection that a firewall has dropped nothing answers, and a page waits this long.
_CHECK_MILLISECONDS = 5_000


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to PostgreSQL; after a dead connection all idle connections are replaced."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection that answers; raise psycopg.OperationalError without a server."""
        connection = super().get_new_connection(conn_params)
        if not self.pool:
            return connection
        try:
            with _given_up_soon(connection):
                ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            self.pool.putconn(connection)
            self.pool.drain()
            connection = super().get_new_connection(conn_params)
        return connection


@contextmanager
def _given_up_soon(connection: Any) -> Iterator[None]:
    """Shorten the time after which sent and unacknowledged bytes count as lost.

    The time in the settings is for statements, which are worth a longer wait than a new connection.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as to_server:
        if to_server.family not in (socket.AF_INET, socket.AF_INET6):
            yield
            return
        option = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        usual = to_server.getsockopt(*option)
        to_server.setsockopt(*option, _CHECK_MILLISECONDS)
        try:
            yield
        finally:
            to_server.setsockopt(*option, usual)
