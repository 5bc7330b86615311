"""Ids of rows that are yet to be created."""

from django.db import connection
from django.db.models import Model

_RESERVE = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"


def reserve_ids(model: type[Model], count: int) -> list[int]:
    """Return ids for rows that are yet to be created, so that other rows can refer to the ids."""
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, [model._meta.db_table, count])
        return [row[0] for row in cursor.fetchall()]
