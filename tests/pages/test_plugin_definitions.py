"""Pages draw time definitions of a package like the time definitions of Slicewise."""

from datetime import UTC, date, datetime
from typing import Any

from partitions_app.grid.layouts import GridRequest, draw, layout
from partitions_app.grid.periods import Clock
from slicewise import PartitionByProduct, PartitionBySequence, PartitionByTime
from slicewise.partitions.rows import partition_rows

CLOCK = Clock(datetime(2024, 7, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))


class HalfMonths(PartitionByTime, kind="half_months"):
    """Half months: from the first to the fourteenth of a month, and the rest of the month."""

    def boundaries(self, year: int) -> list[date]:
        return [date(year, month, day) for month in range(1, 13) for day in (1, 15)]


HALVES = HalfMonths(start="2024-01-01", timezone="Europe/Berlin")


def test_the_grid_has_a_cell_for_each_window_of_a_package_s_calendar() -> None:
    page = layout(HALVES, GridRequest(), CLOCK)
    assert page.keys[:3] == ("2024-01-01", "2024-01-15", "2024-02-01")
    assert len(page.keys) >= 12
    assert draw(page, {}, {}).blocks


def test_the_grid_has_rows_for_the_segments_beside_it() -> None:
    product = PartitionByProduct({"half": HALVES, "shop": PartitionBySequence(["a", "b"])})
    page = layout(product, GridRequest(), CLOCK)
    assert "2024-01-15|b" in page.keys
    assert draw(page, {}, {}).blocks


def test_rows_have_windows_and_buckets() -> None:
    rows: list[Any] = list(partition_rows(HALVES, HALVES.select("2024-02")))
    assert [(row.key, row.bucket) for row in rows] == [
        ("2024-02-01", date(2024, 2, 1)),
        ("2024-02-15", date(2024, 2, 1)),
    ]
