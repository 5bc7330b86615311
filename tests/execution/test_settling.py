"""The record of a run's end for each of its partitions, in one statement."""

import pytest
from django.db import IntegrityError, connection, transaction

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.models import Gateway, Materialization, RunPartition
from tests.attempts import begun, staged
from tests.factories import DAILY_2013, asset, outlet_of


def test_each_partition_is_recorded_with_what_was_staged_of_it(
    alice: User, gateway: Gateway
) -> None:
    flights, weather = asset("flights", DAILY_2013), asset("weather", DAILY_2013)
    first = begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")
    second = begun(weather, alice, gateway, "2013-01-02")
    pieces = [
        {**partition, "rows": number, "bytes": 10 * number}
        for number, partition in enumerate(staged(first), 1)
    ]
    assert attempts.intend_to_publish(first.row, [outlet_of(first, pieces)])
    assert attempts.intend_to_publish(second.row, [outlet_of(second, staged(second))])
    assert ending.succeed(first.row)
    materializations = Materialization.objects.order_by("partition__window_start").values_list(
        "partition__key", "version", "run", "attempt", "producer_version", "rows", "bytes"
    )
    run = first.run
    assert list(materializations) == [
        (f"2013-01-0{n}", 1, run.pk, first.row.pk, run.producer_version_id, n, 10 * n)
        for n in (1, 2, 3)
    ]
    own_partitions = flights.partitions.order_by("window_start")
    assert list(own_partitions.values_list("rows", "bytes", "version", "last_run")) == [
        (n, 10 * n, 1, run.pk) for n in (1, 2, 3)
    ]
    assert not own_partitions.filter(held_by__isnull=False).exists()
    # The other asset's run still holds its partition.
    partitions = weather.partitions.values_list("state", "version", "held_by")
    assert list(partitions) == [("missing", 0, second.run.pk)]
    assert set(run.partitions.values_list("state", flat=True)) == {RunPartition.State.SUCCEEDED}


def test_a_recorded_run_and_its_partitions_cannot_be_removed_below_the_record(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY_2013)
    attempt = begun(flights, alice, gateway)
    assert attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    assert ending.succeed(attempt.row)
    for table in ("assets_app_run", "assets_app_assetpartition"):
        with pytest.raises(IntegrityError), transaction.atomic():
            remove_all(table)


def remove_all(table: str) -> None:
    """Remove all rows, which the database alone prevents."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
