"""The watermark of runs of runtime partitions: by the order of keys, not of materialization."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionError,
    PartitionKey,
    asset,
)
from slicewise.keys.key_json import key_to_json
from slicewise.partitions.definition import PartitionDefinition
from slicewise.running.watermarks import Watermark
from slicewise.testing import materialize
from tests.runtime.runs import Runs

MARKS = PartitionAtRuntime("marks")
DAY = {number: datetime(2024, 1, number, tzinfo=UTC) for number in range(1, 9)}


def mark(
    *,
    partition: object = None,
    past: Iterable[object] = (),
    definition: PartitionDefinition | None = MARKS,
    **options: Any,
) -> Watermark:
    """Return the watermark of a run of these partitions after these, the latest first."""

    found: list[Watermark] = []

    @asset(partition=definition)
    def rows(context: Any) -> None:
        found.append(context.watermark(**options))

    materialize(rows, partition=partition, past=past)
    return found[0]


def test_a_run_that_looks_for_rows_begins_after_the_greatest_key() -> None:
    # The second day was materialized again after the third.
    assert mark(past=[DAY[2], DAY[3], DAY[1]]) == (DAY[3], None)


def test_the_first_run_begins_at_the_given_mark() -> None:
    assert mark(previous=DAY[1]) == (DAY[1], None)
    assert mark() == (None, None)


def test_an_old_key_has_the_same_rows_whenever_it_is_run() -> None:
    assert mark(partition=[DAY[2]], past=[DAY[1]]) == (DAY[1], DAY[2])
    assert mark(partition=[DAY[2]], past=[DAY[4], DAY[3], DAY[2], DAY[1]]) == (DAY[1], DAY[2])
    assert mark(partition=[DAY[2]], past=[DAY[1], DAY[4], DAY[3]]) == (DAY[1], DAY[2])
    assert mark(partition=[DAY[1]], past=[DAY[2]], previous=0) == (0, DAY[1])


class Place(PartitionKey):
    shard: int
    offset: int


@pytest.mark.parametrize(
    ("keys", "high", "low"),
    [
        ([9, 100, 10], 100, 10),  # as texts, 9 would be greater
        ([-5, 3, 0], 0, -5),
        (["b", "a", "c"], "c", "b"),
        ([date(2024, 1, 9), date(2024, 1, 10)], date(2024, 1, 10), date(2024, 1, 9)),
        ([Place(1, 9), Place(1, 10), Place(2, 1)], Place(2, 1), Place(1, 10)),
        ([(1, 9), (1, 10)], (1, 10), (1, 9)),
    ],
)
def test_keys_have_the_order_of_their_type(keys: list[Any], high: Any, low: Any) -> None:
    assert mark(partition=[high], past=keys) == (low, high)


def test_a_run_of_several_keys_has_a_watermark_for_each() -> None:
    both = [DAY[2], DAY[4]]
    assert mark(partition=both, past=[DAY[3], DAY[1]], key=DAY[4]) == (DAY[3], DAY[4])
    assert mark(partition=both, past=[DAY[1]], key=DAY[4]) == (DAY[2], DAY[4])
    assert mark(partition=both, past=[DAY[1]], key=DAY[2]) == (DAY[1], DAY[2])
    with pytest.raises(PartitionError, match=r"covers 2 partitions; ask for each"):
        mark(partition=both)
    with pytest.raises(PartitionError, match="no partition of this run"):
        mark(partition=both, key=DAY[3])


def test_other_partitions_have_no_watermark() -> None:
    days = PartitionByInterval("@daily", start="2024-01-01")
    with pytest.raises(PartitionError, match=r"windows of time; context\['partition'\].interval"):
        mark(definition=days, partition="2024-01-05")
    with pytest.raises(PartitionError, match="this run has no partitions"):
        mark(definition=None)


def test_a_key_that_was_removed_is_no_mark() -> None:
    assert mark(past=[7, "100", 12]) == (12, None)
    assert mark(partition=[12], past=[7, "9"]) == (7, 12)
    assert mark(partition=["12"], past=["7", "11"]) == ("11", "12")


def test_a_runner_asks_its_worker_for_all_keys(runs: Runs) -> None:
    runs.define("""
        @asset(partition=PartitionAtRuntime("marks"))
        def rows(context):
            print(*context.watermark(previous=0))
    """)

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        numbers, following = ([7, 100], None) if question["after"] else ([3, 20], [1])
        keys = [{"key": key_to_json(PartitionKey.of(number))} for number in numbers]
        return {"type": "answer", "keys": keys, "next": following}

    runs.answer = answer
    high = {"key": key_to_json(PartitionKey.of(50))}
    assert runs.run("rows", [high]).log == "20 50\n"
    assert runs.run("rows", []).log == "100 None\n"
