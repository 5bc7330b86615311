"""Rows of partitions, as servers store them."""

from datetime import UTC, date, datetime

from hypothesis import given, settings

from slicewise import (
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionSet,
)
from slicewise.partitions.rows import PartitionRow, partition_rows
from tests.sdk.strategies import definitions


@given(definition=definitions)
@settings(max_examples=50, deadline=None)
def test_rows_say_what_the_keys_say_in_their_order(definition: PartitionDefinition) -> None:
    chosen = PartitionSet.of(definition, definition.keys()[:80])
    rows = list(partition_rows(definition, chosen))
    keys = list(chosen)
    assert [row.key for row in rows] == [key.text for key in keys]
    assert [row.segment for row in rows] == [key.segment for key in keys]
    windows = [key.time for key in keys]
    assert [(row.start, row.end) for row in rows] == [
        (window.start, window.end) if window else (None, None) for window in windows
    ]


def test_the_bucket_is_the_local_day_of_fine_cadences_and_the_month_of_others() -> None:
    hourly = PartitionByInterval("@hourly", timezone="America/New_York")
    row = next(partition_rows(hourly, hourly.select("2024-01-01T23:00")))
    assert row == PartitionRow(
        "2024-01-01T23:00-05:00",
        datetime(2024, 1, 2, 4, tzinfo=UTC),
        datetime(2024, 1, 2, 5, tzinfo=UTC),
        "",
        date(2024, 1, 1),
    )
    daily = PartitionByInterval("@daily")
    assert next(partition_rows(daily, daily.select("2024-02-29"))).bucket == date(2024, 2, 1)


def test_segments_surround_the_window_in_the_order_of_dimensions() -> None:
    product = PartitionByProduct(
        {
            "a": PartitionBySequence(["x", "y"]),
            "day": PartitionByInterval("@daily"),
            "b": PartitionBySequence(["z"]),
        }
    )
    rows = list(partition_rows(product, product.select("day=2024-01-01")))
    assert [(row.key, row.segment) for row in rows] == [
        ("x|2024-01-01|z", "x|z"),
        ("y|2024-01-01|z", "y|z"),
    ]


def test_an_unpartitioned_asset_has_one_row() -> None:
    assert list(partition_rows(None, None)) == [PartitionRow("", None, None, "", None)]
