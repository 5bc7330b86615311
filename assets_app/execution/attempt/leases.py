"""Leases: until when attempts belong to their workers.

The database's clock decides, and a token names the present holder of an attempt.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

from assets_app.execution.attempt.outputs import DiscoveredKeys
from assets_app.models import Lease, RunAttempt
from assets_app.queries.clock import database_time

# An attempt that is being ended has locked its lease: other attempts do not wait for the lease, nor
# does recovery take the attempt. A worker that loses its attempt at this very moment learns of the
# loss a second later.
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
    """Create the lease of an attempt that has just begun."""
    Lease.objects.bulk_create([Lease(attempt=attempt, until=_lease_end())])


def end_lease(attempt: RunAttempt) -> None:
    """Delete the lease of an attempt that has ended."""
    Lease.objects.filter(attempt=attempt.pk).delete()


def still_held(attempt: RunAttempt) -> bool:
    """Return whether the attempt has not ended and still has its token; lock the attempt if so."""
    return _locked(attempt).exists()


def found_if_held(attempt: RunAttempt) -> DiscoveredKeys | None:
    """Return the keys that the attempt has discovered, and lock the attempt as `still_held` does.

    Returns None if the attempt is no longer held.
    """
    return _locked(attempt).values_list("found", flat=True).first()


def _locked(attempt: RunAttempt) -> QuerySet[RunAttempt]:
    return RunAttempt.objects.select_for_update().filter(
        pk=attempt.pk, token=attempt.token, ended_at__isnull=True
    )


@transaction.atomic
def renew(attempt: RunAttempt) -> bool:
    """Extend the attempt's lease; return False if the attempt has lost the lease."""
    own_lease = Lease.objects.filter(attempt=attempt.pk)
    return still_held(attempt) and own_lease.update(until=_lease_end()) == 1


def renew_all(attempts: Iterable[RunAttempt]) -> dict[UUID, str]:
    """Extend the leases that attempts still have; return the states of their runs by token.

    Takes one statement, which changes no other rows.
    """
    attempt_tokens = [(attempt.pk, attempt.token) for attempt in attempts]
    facts: dict[str, Any] = {
        "attempts": [pk for pk, _ in attempt_tokens],
        "tokens": [token for _, token in attempt_tokens],
        "length": timedelta(seconds=settings.LEASE_SECONDS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, facts)
        return dict(cursor.fetchall())


def _lease_end() -> Combinable:
    return database_time(timedelta(seconds=settings.LEASE_SECONDS))
