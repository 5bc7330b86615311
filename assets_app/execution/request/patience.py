"""Transactions of people's requests, which answer in time although other transactions hold
locks.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction

from assets_app.execution.database import is_lock_timeout, limit_lock_waits
from slicewise_server.web.request_errors import ConflictingRequest

# Every request is answered within a second.
_LONGEST_WAIT = "300ms"
# Foreign keys, too, wait for rows, and are checked by the commit: the commit of an outer
# transaction is too late to report a conflict of the request.
_CHECK_NOW = """
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
SET LOCAL lock_timeout TO DEFAULT
"""


@contextmanager
def patient_transaction(field: str) -> Iterator[None]:
    """Open a transaction that waits for a row for a moment only.

    A run that records a million partitions locks the rows for a minute. In this case
    ConflictingRequest is raised on ``field``, and no part of the request is done. Within another
    transaction, later statements may wait for longer.
    """
    is_within_another = connection.in_atomic_block
    try:
        with transaction.atomic():
            limit_lock_waits(_LONGEST_WAIT)
            yield
            if is_within_another:
                with connection.cursor() as cursor:
                    cursor.execute(_CHECK_NOW)
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise
        raise ConflictingRequest(
            {
                field: "Some of these partitions are now being recorded or queued by another run"
                " or request. Nothing was changed: repeat the request in a minute."
            }
        ) from error
