"""The one clock of an installation: the clock of the database.

Hosts differ by seconds, and may be set wrong by hours. Times that one host writes and another
compares with the present (leases, heartbeats, the next try) come from this clock alone, and so does
the time by which partitions are due.
"""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import DateTimeField, ExpressionWrapper, Func, Value
from django.db.models.expressions import Combinable


def database_now() -> datetime:
    """Return the present, which goes on within a transaction, unlike SQL's now()."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def database_time(later: timedelta = timedelta()) -> Combinable:
    """Return the present, or a later time, as a value that a statement reads from the clock by
    itself.
    """
    now = Func(function="clock_timestamp", output_field=DateTimeField())
    return ExpressionWrapper(now + Value(later), output_field=DateTimeField()) if later else now
