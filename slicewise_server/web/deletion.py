"""Deletion of old rows in bounded steps, for tables that grow without end."""

from typing import Any

from django.db.models import QuerySet


def delete_oldest(rows: QuerySet[Any], most: int) -> int:
    """Delete at most so many of the rows, by ascending id; return the number of deleted rows."""
    ids = rows.order_by("id").values("id")[:most]
    deleted: int
    deleted, _by_model = rows.model._default_manager.filter(pk__in=ids).delete()
    return deleted
