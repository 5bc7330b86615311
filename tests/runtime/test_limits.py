"""Definitions with more segments than a server takes are refused, by the name of the setting."""

from pathlib import Path
from typing import Any

import pytest

from slicewise.loading.archives import load_bundle
from slicewise.partitions.limits import Limits

HEADER = "from slicewise import *\n"
MANY = "PartitionBySequence(range(5), name='shop')"


def errors(folder: Path, text: str, **limits: int) -> list[dict[str, Any]]:
    (folder / "a.py").write_text(HEADER + text)
    bundle_errors: list[dict[str, Any]] = load_bundle(folder, limits=Limits(**limits))["errors"]
    return bundle_errors


@pytest.mark.parametrize(
    "text",
    [
        f"@asset(partition={MANY})\ndef sales(): ...\n",
        f"sales = Asset('sales', partition={MANY})\n",
        "@asset(partition=PartitionByProduct({'day': PartitionByInterval('@daily'),"
        f" 'shop': {MANY}}}))\ndef sales(): ...\n",
    ],
)
def test_a_long_sequence_is_refused(tmp_path: Path, text: str) -> None:
    assert errors(tmp_path, text, max_segments_per_sequence=5) == []
    (error,) = errors(tmp_path, text, max_segments_per_sequence=4)
    assert error["message"] == (
        "asset 'sales': the sequence 'shop' has 5 segments; the limit is 4 (setting"
        " MAX_SEGMENTS_PER_SEQUENCE of the server)"
    )
    assert (error["path"], error["line"]) == ("a.py", 2)


def test_the_default_is_ten_thousand(tmp_path: Path) -> None:
    text = "sales = Asset('sales', partition=PartitionBySequence(range({})))\n"
    assert errors(tmp_path, text.format(10_000)) == []
    (error,) = errors(tmp_path, text.format(10_001))
    assert "has 10,001 segments; the limit is 10,000" in error["message"]


PRODUCT = f"PartitionByProduct({{'shop': {MANY}, 'size': PartitionBySequence(['a', 'b'])}})"


@pytest.mark.parametrize("partition", ["PartitionBySequence(range(10))", PRODUCT])
def test_a_tick_makes_no_more_than_it_may(tmp_path: Path, partition: str) -> None:
    text = f"@asset(schedule='@daily', partition={partition})\ndef sales(): ...\n"
    assert errors(tmp_path, text, max_partitions_per_tick=10) == []
    (error,) = errors(tmp_path, text, max_partitions_per_tick=9)
    assert "one tick materializes 10 partitions" in error["message"]
    assert "MAX_PARTITIONS_PER_TICK" in error["message"]
    by_hand = text.replace("schedule='@daily', ", "")
    assert errors(tmp_path, by_hand, max_partitions_per_tick=9) == []


def test_a_product_has_no_more_combinations_than_a_backfill_may_name(tmp_path: Path) -> None:
    text = f"@asset(partition={PRODUCT})\ndef sales(): ...\n"
    (error,) = errors(tmp_path, text, max_partitions_per_backfill=9)
    assert "10 partitions, one for each segment; the limit is 9" in error["message"]


def test_a_tick_makes_no_more_again_than_it_may(tmp_path: Path) -> None:
    day = "PartitionByInterval('* * * * *', start='2000-01-01')"
    text = "@asset(schedule='@hourly', partition={}, refresh={})\ndef sales(): ...\n"
    assert errors(tmp_path, text.format(day, 10_000)) == []
    (error,) = errors(tmp_path, text.format(day, 10**9))
    assert error["message"] == (
        "asset 'sales': with refresh=1000000000 one tick materializes 1,000,000,000 partitions"
        " again; the limit is 10,000 (setting MAX_PARTITIONS_PER_TICK of the server); write"
        " refresh=10000, or less"
    )
    by_shop = f"PartitionByProduct({{'day': {day}, 'shop': {MANY}}})"
    (error,) = errors(tmp_path, text.format(by_shop, 3), max_partitions_per_tick=10)
    assert "15 partitions again" in error["message"]
    assert error["message"].endswith("write refresh=2, or less")


def test_keys_that_runs_find_are_not_counted(tmp_path: Path) -> None:
    text = "@asset(schedule='@daily', partition=PartitionAtRuntime('shop'))\ndef sales(): ...\n"
    assert errors(tmp_path, text, max_segments_per_sequence=0, max_partitions_per_tick=0) == []
