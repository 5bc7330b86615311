"""Connections from a pool, each looked at before it is given out (Django finds this by its name).

Connections that idled in the pool while the server was restarted are dead. Django's own check takes
one after the other, with pauses that double: a page would wait for seconds, or break.
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

# A connection that a firewall has forgotten answers nothing: a page waits for that.
_CHECK_MILLISECONDS = 5_000


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to PostgreSQL; where one in the pool is dead, all that idle there are new."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that answers. psycopg.OperationalError where the server does not."""
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
    """Shorten the time after which what is sent and not acknowledged counts as lost.

    That of the settings is for statements, which are worth more patience than a new connection.
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
