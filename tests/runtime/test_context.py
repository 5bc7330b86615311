"""The context of a run: facts for the function, and keys that the function adds."""

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest

from slicewise import (
    DefinitionError,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionBySequence,
    PartitionError,
    PartitionKey,
    PartitionKeyError,
    RunContext,
    get_current_context,
)
from slicewise.keys.product_key import WHOLE
from slicewise.running.context import PartitionContext, current_context
from slicewise.running.handles import AssetHandle

DAYS = PartitionByInterval("@daily", start="2013-01-01", timezone="Europe/Berlin")
SHOPS = PartitionBySequence(["mitte", "x/y"], name="shop")
CUSTOMERS = PartitionAtRuntime("customers")


class Position(PartitionKey):
    x: float
    y: float


def handle(name: str, definition: Any = None, keys: Any = ()) -> AssetHandle:
    return AssetHandle(name, uri=None, definition=definition, keys=keys, session=lambda: None)  # type: ignore[arg-type, return-value]


def context(definition: Any = None, keys: Any = (WHOLE,), **facts: Any) -> RunContext:
    days = [DAYS.parse("2013-01-01"), DAYS.parse("2013-01-02")]
    upstream = {"raw": handle("raw", DAYS, days)}
    return RunContext(
        run_id=7,
        attempt=2,
        trigger="manual",
        params={"limit": 3},
        asset=handle("own", definition, keys),
        logical_time=datetime(2024, 1, 1, tzinfo=UTC),
        partition=PartitionContext(definition, keys, upstream, **facts),
    )


def test_a_context_is_a_mapping_of_what_a_run_is() -> None:
    run_context = context()
    assert list(run_context) == [
        *("run_id", "attempt", "trigger", "params", "asset", "logical_time", "partition")
    ]
    assert (run_context["run_id"], run_context["attempt"], run_context["params"]) == (
        7,
        2,
        {"limit": 3},
    )
    assert run_context.get("nothing") is None
    with pytest.raises(KeyError, match="has no 'runid'; use one of run_id"):
        run_context["runid"]


@pytest.mark.parametrize(
    ("definition", "keys", "key", "text"),
    [
        (DAYS, ["2013-03-31"], DAYS.parse("2013-03-31"), "2013-03-31"),
        (SHOPS, ["x%2Fy"], "x/y", "x%2Fy"),
    ],
)
def test_the_only_partition_of_a_run_is_its_key(
    definition: Any, keys: list[str], key: Any, text: str
) -> None:
    partition = context(definition, [definition.parse(key_text) for key_text in keys])["partition"]
    assert (partition.key, partition.keys, str(partition)) == (key, (key,), text)
    assert partition.definition is definition


def test_several_partitions_have_one_interval_and_no_key() -> None:
    partition = context(DAYS, list(DAYS.select("2013-03-31..2013-04-01")))["partition"]
    with pytest.raises(PartitionError, match="covers 2 partitions"):
        _ = partition.key
    hours = (partition.interval.end - partition.interval.start).total_seconds() / 3600
    assert hours == 47  # the clocks change on the first of the two
    assert partition.interval.zone == "Europe/Berlin"
    assert str(partition) == "2013-03-31..2013-04-01"


def test_a_run_that_finds_partitions_covers_none() -> None:
    partition = context(CUSTOMERS, [])["partition"]
    with pytest.raises(PartitionError, match="the run discovers partitions"):
        _ = partition.key
    with pytest.raises(PartitionError, match="no dimension of time"):
        _ = partition.interval
    assert (partition.keys, str(partition)) == ((), "")


def test_upstream_partitions_are_asked_for_by_name() -> None:
    partition = context(DAYS, [DAYS.parse("2013-01-02")])["partition"]
    assert [str(day) for day in partition.upstream("raw")] == ["2013-01-01", "2013-01-02"]
    with pytest.raises(
        KeyError, match="'raws' is no upstream asset of this run; the upstream assets are: raw"
    ):
        partition.upstream("raws")


def test_each_call_goes_through_the_past_anew() -> None:
    def past() -> Iterator[PartitionKey]:
        yield from (DAYS.parse("2013-01-02"), DAYS.parse("2013-01-01"))

    partition = context(DAYS, [DAYS.parse("2013-01-03")], past=past)["partition"]
    assert str(next(partition.iter_past_partitions())) == "2013-01-02"
    assert [str(day) for day in partition.iter_past_partitions()] == ["2013-01-02", "2013-01-01"]


def test_outside_of_a_run_there_is_no_context_and_nothing_is_found() -> None:
    with pytest.raises(RuntimeError, match="no run is active"):
        get_current_context()
    with pytest.raises(RuntimeError, match=r"'customers'.*no run is active"):
        CUSTOMERS.add_partition(key="a")


def test_threads_of_a_run_have_its_context() -> None:
    contexts: list[RunContext] = []
    with current_context(context()) as own_context:
        thread = threading.Thread(target=lambda: contexts.append(get_current_context()))
        thread.start()
        thread.join()
    assert len(contexts) == 1
    assert contexts[0] is own_context


def test_runs_of_several_threads_have_a_context_each() -> None:
    both_are_in = threading.Barrier(2, timeout=120)
    right: list[bool] = []

    def make() -> None:
        with current_context(context()) as own_context:
            both_are_in.wait()
            right.append(get_current_context() is own_context)
            both_are_in.wait()
        both_are_in.wait()
        with pytest.raises(RuntimeError):
            get_current_context()
        right.append(True)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4


def test_adding_a_key_twice_is_adding_it_once() -> None:
    orders = PartitionAtRuntime("orders")
    with current_context(context()) as own_context:
        for key in ("b", 1, "a", "b", 1.0, Position(1.0, 2.0), date(2024, 1, 1)):
            CUSTOMERS.add_partition(key=key)
        orders.add_partition(key="b")
    keys_by_set = {
        name: [key.value for key in keys] for name, keys in own_context.discovered.items()
    }
    assert keys_by_set == {
        "customers": ["b", 1, "a", Position(1.0, 2.0), date(2024, 1, 1)],
        "orders": ["b"],
    }


def test_threads_may_add_keys_side_by_side() -> None:
    def add() -> None:
        for number in range(200):
            CUSTOMERS.add_partition(key=number)

    with current_context(context()) as own_context:
        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(key.value for key in own_context.discovered["customers"]) == list(range(200))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"id": 1}, "PartitionKey"),
        (None, "cannot be a partition key"),
        (WHOLE, "is no key of"),
        (DAYS.parse("2013-01-01"), "is no key of"),
        ("x" * 300, "a name of 310 bytes"),
        ("ü" * 123, "a name of 256 bytes"),
    ],
)
def test_added_values_that_fit_no_key_or_no_folder_are_refused(key: Any, message: str) -> None:
    with current_context(context()) as own_context:
        with pytest.raises(PartitionKeyError, match=message):
            CUSTOMERS.add_partition(key=key)
        CUSTOMERS.add_partition(key="ü" * 122)
    assert len(own_context.discovered["customers"]) == 1


def test_two_keys_of_one_text_are_refused() -> None:
    with current_context(context()) as own_context:
        CUSTOMERS.add_partition(key=1)
        with pytest.raises(PartitionKeyError, match="1 and '1' would be one partition"):
            CUSTOMERS.add_partition(key="1")
    assert [key.value for key in own_context.discovered["customers"]] == [1]


def test_only_sets_found_at_run_time_are_added_to() -> None:
    with pytest.raises(DefinitionError, match="only a PartitionAtRuntime takes"):
        context().discoveries.add(SHOPS, "mitte")
