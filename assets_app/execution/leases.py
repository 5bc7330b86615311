"""Until when attempts belong to their workers. The database's clock decides, and a token says who
holds an attempt now.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from assets_app.models import Lease, RunAttempt
from assets_app.queries.clock import database_now

# An attempt that is being ended has locked its lease: neither do the others wait for it, nor does
# recovery take it. Who has been taken over from in this very moment is told so a second later.
_RENEW = """
WITH held AS MATERIALIZED (
    SELECT attempt.id, attempt.token, run.state
    FROM assets_app_lease AS lease
    JOIN assets_app_runattempt AS attempt ON attempt.id = lease.attempt_id
    JOIN assets_app_run AS run ON run.id = attempt.run_id
    WHERE lease.attempt_id = ANY(%(attempts)s) AND attempt.token = ANY(%(tokens)s)
), free AS MATERIALIZED (
    SELECT attempt_id FROM assets_app_lease WHERE attempt_id IN (SELECT id FROM held)
    ORDER BY attempt_id FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE assets_app_lease AS lease SET until = clock_timestamp() + %(length)s
    FROM free WHERE lease.attempt_id = free.attempt_id
)
SELECT token, state FROM held
"""


def begin_lease(attempt: RunAttempt) -> None:
    """Give an attempt that has just begun its lease."""
    Lease.objects.create(attempt=attempt, until=_lease_end())


def end_lease(attempt: RunAttempt) -> None:
    """Delete the lease of an attempt that has ended."""
    Lease.objects.filter(attempt=attempt.pk).delete()


def still_held(attempt: RunAttempt) -> bool:
    """Lock the attempt if its token is still the one in the row and it has not ended."""
    held = RunAttempt.objects.select_for_update().filter(
        pk=attempt.pk, token=attempt.token, ended_at__isnull=True
    )
    return held.exists()


@transaction.atomic
def renew(attempt: RunAttempt) -> bool:
    """Extend the attempt's lease; False if it is no longer its own."""
    mine = Lease.objects.filter(attempt=attempt.pk)
    return still_held(attempt) and mine.update(until=_lease_end()) == 1


def renew_all(attempts: Iterable[RunAttempt]) -> dict[UUID, str]:
    """Extend the leases that are still held, in one statement that touches nothing else; the state
    of each such run by its attempt's token.
    """
    held = [(attempt.pk, attempt.token) for attempt in attempts]
    facts: dict[str, Any] = {
        "attempts": [pk for pk, _ in held],
        "tokens": [token for _, token in held],
        "length": timedelta(seconds=settings.LEASE_SECONDS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, facts)
        return dict(cursor.fetchall())


def _lease_end() -> datetime:
    return database_now() + timedelta(seconds=settings.LEASE_SECONDS)
