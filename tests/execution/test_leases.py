"""The cost of a worker's heartbeat every second."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending, leases
from assets_app.execution.attempt.ending import Failure
from assets_app.models import Gateway, Lease, Run, RunAttempt, RunState
from tests.attempts import begun, publish, staged
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset, outlet_of

_WRITTEN = """
SELECT relname, n_tup_ins + n_tup_upd + n_tup_del, n_tup_upd - n_tup_hot_upd
FROM pg_stat_xact_user_tables WHERE schemaname = current_schema()
"""


def written() -> dict[str, tuple[int, int]]:
    """Count the rows written in this transaction by table, and the rows that changed an index."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITTEN)
        return {table: (rows, indexed) for table, rows, indexed in cursor.fetchall()}


def test_a_heartbeat_is_one_statement_that_changes_no_attempt_and_no_index(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    held_attempts = [begun(flights, alice, gateway, f"2013-01-0{day}").row for day in range(1, 4)]
    before = written()
    for _ in range(10):
        with CaptureQueriesContext(connection) as statements:
            assert len(leases.renew_all(held_attempts)) == 3
        assert len(statements) == 1
    after = written()
    changed = {
        table: (rows - before[table][0], indexed - before[table][1])
        for table, (rows, indexed) in after.items()
        if (rows, indexed) != before[table]
    }
    assert changed == {"assets_app_lease": (30, 0)}


def test_a_lease_is_renewed_by_its_holder_alone(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    first, second = (begun(flights, alice, gateway, f"2013-01-0{day}") for day in (1, 2))
    attempts.intend_to_publish(second.row, [outlet_of(second, staged(second))])
    lose_the_worker()
    taken_attempt = attempts.take_over(second.row.pk, str(second.row.token), RunState.PUBLISHING)
    assert taken_attempt is not None
    until = Lease.objects.get(attempt=taken_attempt).until
    assert until > timezone.now() + timedelta(seconds=5)
    assert leases.renew_all([first.row, second.row]) == {first.row.token: "running"}
    assert not leases.renew(second.row)
    assert Lease.objects.get(attempt=taken_attempt).until == until
    assert leases.renew_all([taken_attempt]) == {taken_attempt.token: "publishing"}


def test_ended_attempts_have_no_lease(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    publish(begun(flights, alice, gateway, "2013-01-01"))
    ending.fail(begun(flights, alice, gateway, "2013-01-02").row, Failure(error="no"))
    ending.requeue_lost(begun(flights, alice, gateway, "2013-01-03").row, "the worker goes")
    assert RunAttempt.objects.count() == 3
    assert not Lease.objects.exists()
    Run.objects.update(not_before=None)
    going_on = begun(flights, alice, gateway, "2013-01-04").row
    assert Lease.objects.get().attempt == going_on
