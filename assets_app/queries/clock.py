"""The one clock of an installation: the database's.

Hosts differ by seconds, and may be set by hours. What one host writes and another compares with
the present (leases, signs of life, when to try again) is told by this clock alone, and so is what
is due.
"""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """Return the present. Within a transaction it goes on, unlike SQL's now()."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now
