"""A function reads partitions of its own asset that were made before."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from slicewise import (
    MissingPartitionsError,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKeyError,
    asset,
)
from slicewise.io import Writer
from slicewise.running.handles import AssetHandle
from slicewise.running.written_handles import OwnAssetHandle
from slicewise.testing import materialize

DAYS = PartitionByInterval("@daily", start="2024-01-01")


def reading(partition: object) -> Any:
    """Try an asset of 2024-01-03 whose function reads these partitions of the asset."""

    @asset(uri="file:///tmp/slicewise-unwritten", partition=DAYS)
    def balances(self: Any) -> Any:
        return self.read(partition=partition)

    past = {"2024-01-01": "first", DAYS.parse("2024-01-02"): "second"}
    return materialize(balances, partition="2024-01-03", past=past)


def test_a_partition_is_read_by_its_text_or_its_key() -> None:
    assert reading("2024-01-01") == "first"
    assert reading(DAYS.parse("2024-01-02")) == "second"
    assert reading(["2024-01-02"]) == "second"


def test_the_past_of_the_context_names_the_latest_partition_for_reading() -> None:
    @asset(uri="file:///tmp/slicewise-unwritten", partition=DAYS)
    def balances(self: Any, context: Any) -> Any:
        return self.read(partition=next(context["partition"].iter_past_partitions()))

    past = {"2024-01-01": "first", "2024-01-02": "second"}
    assert materialize(balances, partition="2024-01-03", past=past) == "second"


def test_partitions_that_are_not_materialized_are_missing() -> None:
    with pytest.raises(MissingPartitionsError, match="are not materialized: 2024-01-05"):
        reading(["2024-01-01", "2024-01-05"])


def test_the_partitions_being_made_are_refused() -> None:
    with pytest.raises(
        PartitionKeyError, match=r"writes 2024-01-03 of balances.*partitions of earlier runs"
    ):
        reading(["2024-01-01", "2024-01-03"])


def test_partitions_of_a_product_and_of_keys_found_at_run_time_are_read() -> None:
    both = PartitionByProduct({"day": DAYS, "shop": PartitionBySequence(["mitte", "süd"])})

    @asset(uri="file:///tmp/slicewise-unwritten", partition=both)
    def balances(self: Any, context: Any) -> Any:
        return self.read(partition=next(context["partition"].iter_past_partitions()))

    past = {"2024-01-01|mitte": 1, "2024-01-02|s%C3%BCd": 2}
    assert materialize(balances, partition="day=2024-01-03 shop=mitte", past=past) == 2

    @asset(uri="file:///tmp/slicewise-unwritten", partition=PartitionAtRuntime("shops"))
    def shops(self: Any) -> Any:
        return self.read(partition="mitte")

    assert materialize(shops, partition="nord", past={"mitte": 3}) == 3


@pytest.mark.parametrize("partition", ["2023-12-31", "no day", []])
def test_invalid_partitions_are_refused(partition: object) -> None:
    with pytest.raises(PartitionKeyError):
        reading(partition)


def test_a_run_asks_which_partitions_are_there() -> None:
    requests: list[Sequence[str]] = []

    def present(keys: Sequence[str]) -> Sequence[str]:
        requests.append(keys)
        return ["2024-01-01"]

    def session() -> Any:
        raise AssertionError("nothing is read")

    handle = OwnAssetHandle(
        "balances",
        uri="file:///tmp/slicewise-unwritten",
        definition=DAYS,
        keys=[DAYS.parse("2024-01-03")],
        session=session,
        writer=Writer(run_id=1, attempt="1"),
        present=present,
    )
    with pytest.raises(MissingPartitionsError, match="not materialized: 2024-01-02"):
        handle.read(partition=["2024-01-01", "2024-01-02"])
    assert requests == [["2024-01-01", "2024-01-02"]]
    with pytest.raises(PartitionKeyError, match="partitions of earlier runs"):
        handle.read(partition="2024-01-03")
    assert len(requests) == 1


def test_with_nothing_to_read_the_line_that_helps_is_named() -> None:
    @asset(uri="file:///tmp/slicewise-unwritten", partition=DAYS)
    def balances(self: Any) -> Any:
        return self.read()

    message = (
        "balances has no data to read: 2024-01-03 is not materialized."
        " Read partitions of earlier runs by self.read(partition=...)"
    )
    with pytest.raises(MissingPartitionsError, match=re.escape(message)):
        materialize(balances, partition="2024-01-03", past={"2024-01-02": "second"})

    @asset(uri="file:///tmp/slicewise-unwritten", partition=PartitionAtRuntime("shops"))
    def shops(self: Any) -> Any:
        return self.read()

    with pytest.raises(
        MissingPartitionsError, match=r"covers no partition.*self\.read\(partition=\.\.\.\)"
    ):
        materialize(shops)

    @asset(uri="file:///tmp/slicewise-unwritten")
    def reader(self: Any) -> Any:
        return self.read()

    with pytest.raises(MissingPartitionsError, match="reader has no data to read"):
        materialize(reader)


@pytest.mark.parametrize(
    ("excluded", "message"),
    [(0, "needs no partition of the asset"), (5, "all 5 partitions that this run would need are")],
)
def test_where_nothing_upstream_is_needed_the_line_that_helps_is_named(
    excluded: int, message: str
) -> None:
    orders = AssetHandle(
        "orders",
        uri="file:///tmp/slicewise-unwritten",
        definition=DAYS,
        keys=[],
        session=lambda: pytest.fail("a session"),
        excluded=excluded,
    )
    with pytest.raises(MissingPartitionsError, match=message) as refused:
        orders.read()
    assert "`if orders.partitions:`" in str(refused.value)
    assert "mapped" not in str(refused.value)


def test_of_its_own_partitions_a_run_reads_those_that_are_there() -> None:
    key_lists: list[list[str]] = []

    class Kept:
        write_modes = ("replace",)
        measures_cheaply = False

        def read(self, session: Any, definition: Any, keys: Any, *, version: Any) -> str:
            key_lists.append([key.text for key in keys])
            return "frame"

    handle = OwnAssetHandle(
        "balances",
        uri="file:///tmp/slicewise-unwritten",
        definition=DAYS,
        keys=[DAYS.parse(day) for day in ("2024-01-02", "2024-01-03")],
        session=lambda: None,
        writer=Writer(run_id=1, attempt="1"),
        present=lambda keys: ["2024-01-02"],
    )
    vars(handle)["_storage"] = Kept()
    assert handle.read() == "frame"
    assert key_lists == [["2024-01-02"]]
