"""Which upstream partitions a run reads."""

import tracemalloc
from unittest.mock import patch

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending, inputs
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.inputs import forget_superseded, read_inputs
from assets_app.execution.queue.control import cancel_group
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, AttemptInput, Gateway, RunAttempt
from assets_app.queries import pages
from assets_app.queries.inputs_read import inputs_of
from tests.attempts import begun, publish
from tests.factories import DAILY_2013, asset
from tests.partition_records import made
from tests.queued_runs import run_of


def test_of_what_reads_all_of_another_only_the_present_version_keeps_its_inputs(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-03")
    total = asset("whole", upstream={"days": None})

    def tried(*, fails: bool = False) -> attempts.Attempt:
        attempt = begun(total, alice, gateway, "")
        attempts.take_inputs(attempt)
        if fails:
            assert ending.fail(attempt.row, Failure(error="no"))
        else:
            publish(attempt)
        return attempt

    tries = [tried(), tried(), tried(fails=True), tried(fails=True)]
    under_way = begun(total, alice, gateway, "")
    attempts.take_inputs(under_way)
    input_counts = [attempt.row.inputs.count() for attempt in (*tries, under_way)]
    assert input_counts == [0, 3, 0, 0, 3]
    partition = pages.partition_of(total, "")
    assert partition is not None
    latest = pages.materializations_of(partition)[0]
    assert latest.attempt_id == tries[1].row.pk
    assert len(inputs_of(partition, latest)) == 3


def test_inputs_of_versions_before_go_however_many_runs_read_nothing_since(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-03")
    total = asset("whole", upstream={"days": None})

    old = begun(total, alice, gateway, "")
    attempts.take_inputs(old)
    assert ending.fail(old.row, Failure(error="no"))
    for _ in range(25):
        cancel_group(
            materialize(MaterializeRequest(asset=total, selection=""), user=alice), user=alice
        )
    under_way = begun(total, alice, gateway, "")
    attempts.take_inputs(under_way)
    assert [attempt.row.inputs.count() for attempt in (old, under_way)] == [0, 3]


def test_accumulated_records_of_inputs_are_deleted_a_few_attempts_at_a_time(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-03")
    total = asset("whole", upstream={"days": None})
    for _ in range(inputs._ATTEMPTS_AT_ONCE + 2):
        attempt = begun(total, alice, gateway, "")
        with patch.object(attempts, "forget_superseded"):
            attempts.take_inputs(attempt)
        assert ending.fail(attempt.row, Failure(error="no"))
    input_counts = []
    for _ in range(3):
        forget_superseded(total)
        input_counts.append(AttemptInput.objects.count())
    assert input_counts == [6, 0, 0]
    assert not RunAttempt.objects.filter(keeps_inputs_of=total).exists()


def _many(of: Asset, number: int) -> None:
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=of,
            identity=of.identity,
            key=f"partition number {place}",
            state="materialized",
            version=1,
        )
        for place in range(number)
    )


def test_little_more_than_the_keys_of_what_is_read_is_kept_in_memory(
    alice: User, gateway: Gateway
) -> None:
    number = 10_000
    days = asset("days", DAILY_2013)
    _many(days, number)
    attempt = begun(asset("whole", upstream={"days": None}), alice, gateway, "")
    tracemalloc.start()
    try:
        (read,) = attempts.take_inputs(attempt)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(read.keys) == attempt.row.inputs.count() == number
    assert most / number < 300, "bytes for each"


def test_an_unpartitioned_asset_may_map_its_upstream_partitions(alice: User) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-02")
    picked = slicewise.Keys(["2013-01-02", "2013-01-03"])
    total = asset("whole", upstream={"days": picked})
    (read,) = read_inputs(run_of(total, None, alice), [""])
    assert read.keys == ["2013-01-02"]
    assert read.missing == ["2013-01-03"]
