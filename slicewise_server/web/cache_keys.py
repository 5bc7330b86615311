"""Keys of the cache, which several installations may share."""

from django.db import connection


def of_database(name: str) -> str:
    """Return the name with that of the database: ids begin anew in another database."""
    return f"{name}-{connection.settings_dict['NAME']}"
