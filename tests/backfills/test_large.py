"""Rows that the page of a large backfill reads: no more than the page shows, whatever the size."""

from collections.abc import Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from backfills_app.models import Backfill
from backfills_app.queries.failures import failures_of
from tests.backfills.driven_backfills import ask
from tests.factories import DAILY_2013, asset
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db

RUNS, PARTITIONS = 20, 200
_ADD_RUN = """
INSERT INTO assets_app_run
    (group_id, producer_version_id, asset_id, trigger, queue, state, selection,
    partition_count, params, created_at, ended_at, attempt_count, code_failures, platform_failures,
    error, error_kind)
SELECT %s, backfill_asset.producer_version_id, backfill_asset.asset_id, 'backfill', 'backfill',
    %s, '', %s, '{}',
    now(), now(), 1, 1, 0, %s, 'code'
FROM backfills_app_backfillasset AS backfill_asset WHERE backfill_asset.backfill_id = %s
    RETURNING id
"""
_ADD_PARTITIONS = """
INSERT INTO backfills_app_backfillpartition
    (backfill_asset_id, position, key, segment, state, reason, run_id)
SELECT backfill_asset.id, last_position.position + place,
    'key ' || place, '', (%s::text[])[place], '', %s
FROM backfills_app_backfillasset AS backfill_asset,
    (SELECT coalesce(max(position), 0) AS position FROM backfills_app_backfillpartition)
        AS last_position,
    generate_series(1, %s) AS place
WHERE backfill_asset.backfill_id = %s
"""


def add_run(backfill: Backfill, state: str, partition_states: Sequence[str], error: str) -> int:
    """Record an ended run of a backfill whose partitions have these states."""
    with connection.cursor() as cursor:
        number = len(partition_states)
        cursor.execute(_ADD_RUN, [backfill.group_id, state, number, error, backfill.pk])
        (run_id,) = cursor.fetchone()
        parameters = [list(partition_states), run_id, number, backfill.pk]
        cursor.execute(_ADD_PARTITIONS, parameters)
    return int(run_id)


def days_of(alice: User) -> Backfill:
    return ask(alice, "days", selection="2013-01-01")


def test_of_each_failed_run_one_failed_partition_is_read(alice: User) -> None:
    asset("days", DAILY_2013)
    other, backfill = days_of(alice), days_of(alice)
    for large_backfill in (other, backfill):
        for number in range(RUNS):
            add_run(large_backfill, "failed", ["failed"] * PARTITIONS, f"ValueError: no {number}")
            add_run(large_backfill, "succeeded", ["succeeded"] * PARTITIONS, "")
    with CaptureQueriesContext(connection) as statements:
        (failure,) = failures_of(backfill)
    assert (failure.number, len(failure.examples)) == (RUNS, 5)
    assert rows_read(statements[0]["sql"]) <= 2 * RUNS


def test_runs_whose_partitions_were_all_put_back_are_no_failures(alice: User) -> None:
    asset("days", DAILY_2013)
    backfill = days_of(alice)
    add_run(backfill, "failed", [], "ValueError: put back")
    partly_run = add_run(backfill, "failed", ["succeeded", "failed"], "ValueError: in part")
    add_run(backfill, "failed", ["succeeded", "active"], "ValueError: put back in part")
    (failure,) = failures_of(backfill)
    assert (failure.error, failure.examples) == ("ValueError: in part", ((partly_run, ""),))
