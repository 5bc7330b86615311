"""Connections from a pool, each looked at before it is given out (Django finds this by its name).

Connections that idled in the pool while the server was restarted are dead. Django's own check takes
one after the other, with pauses that double: a page would wait for seconds, or break.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to PostgreSQL; where one in the pool is dead, all that idle there are new."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that answers. psycopg.OperationalError where the server does not."""
        connection = super().get_new_connection(conn_params)
        if not self.pool:
            return connection
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            self.pool.putconn(connection)
            self.pool.drain()
            connection = super().get_new_connection(conn_params)
        return connection
