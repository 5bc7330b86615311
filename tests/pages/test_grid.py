"""The partition grid: which cells a page has, without a database."""

from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

import pytest

import slicewise
from partitions_app.grid.cells import MAX_CELLS, Cell, Grid, PartitionFact
from partitions_app.grid.extents import ChosenExtent
from partitions_app.grid.layouts import GridRequest, draw, layout
from partitions_app.grid.periods import Clock, counts_starting, period_of, windows_in
from partitions_app.grid.share_cells import AggregateCell
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CLOCK = Clock(NOW, datetime(2026, 1, 1, tzinfo=UTC))
DAILY = PartitionByInterval("@daily", start=date(2013, 1, 1), end=date(2014, 1, 1))


def grid(
    rule: slicewise.PartitionDefinition | None,
    facts: dict[str, PartitionFact] | None = None,
    **query: str,
) -> Grid:
    """Draw a page of the definition's grid, with nothing counted."""
    return draw(layout(rule, GridRequest(**query), CLOCK), facts or {}, {})  # type: ignore[arg-type]


def cells(page: Grid) -> list[Cell | AggregateCell]:
    """Return all cells of a page."""
    return [cell for block in page.blocks for row in block.rows for cell in row.cells if cell]


def keys(page: Grid) -> list[str]:
    """Return the keys of the cells that are one partition each."""
    return [cell.key for cell in cells(page) if isinstance(cell, Cell)]


def texts(rule: slicewise.PartitionDefinition) -> list[str]:
    """Return the key texts of all partitions of a bounded definition."""
    listed = rule.keys()
    return [key.text for key in listed]


def test_a_year_of_days_is_twelve_calendars_with_weekdays_in_their_columns() -> None:
    page = grid(DAILY)
    assert (page.shape, page.title, len(page.blocks)) == ("calendar", "2013", 12)
    assert keys(page) == texts(DAILY)
    first_week = page.blocks[0].rows[0].cells
    # 1 January 2013 was a Tuesday.
    assert first_week[0] is None
    assert isinstance(first_week[1], Cell)
    assert first_week[1].key == "2013-01-01"


def test_a_year_has_no_month_without_partitions() -> None:
    rule = PartitionByInterval("@hourly", start=date(2013, 10, 17), end=date(2014, 1, 1))
    page = grid(rule, zoom="year", at="2013-11-01")
    assert [block.title for block in page.blocks] == ["Oct 2013", "Nov 2013", "Dec 2013"]


def test_a_cell_says_its_key_and_state_and_leads_to_its_page() -> None:
    page = grid(
        DAILY,
        {"2013-01-02": PartitionFact("failed"), "2013-01-03": PartitionFact("missing", "running")},
    )
    by_key = {cell.key: cell for cell in cells(page) if isinstance(cell, Cell)}
    assert by_key["2013-01-02"].title == "2013-01-02: failed"
    assert by_key["2013-01-03"].title == "2013-01-03: running"
    assert by_key["2013-01-04"].title == "2013-01-04: missing"
    assert by_key["2013-01-02"].href == "partitions/2013-01-02/"


def test_a_window_that_is_not_over_is_not_yet_due() -> None:
    page = grid(
        PartitionByInterval("@daily", start=date(2026, 11, 1)), zoom="month", at="2026-11-20"
    )
    by_key = {cell.key: cell.look.name for cell in cells(page) if isinstance(cell, Cell)}
    assert by_key["2026-11-19"] == "missing"
    assert by_key["2026-11-20"] == "not-yet-due"


LEAP_DAYS = PartitionByInterval("0 0 29 2 *", start=date(2000, 1, 1))


@pytest.mark.parametrize(("year", "shown_keys"), [(2015, []), (2016, ["2016-02-29"])])
def test_a_window_of_four_years_is_on_the_page_of_the_year_of_its_start(
    year: int, shown_keys: list[str]
) -> None:
    assert keys(grid(LEAP_DAYS, zoom="year", at=f"{year}-01-01")) == shown_keys


def test_windows_of_four_years_are_counted_in_the_year_of_their_start() -> None:
    edges = [date(year, 1, 1) for year in range(2011, 2018)]
    years = [period_of("year", edge) for edge in edges[:-1]]
    assert [windows_in(LEAP_DAYS, year) for year in years] == [0, 1, 0, 0, 0, 1]
    clock = Clock(datetime(2017, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC))
    assert counts_starting(LEAP_DAYS, edges, clock) == [
        (0, 0), (1, 1), (0, 0), (0, 0), (0, 0), (1, 0)
    ]  # fmt: skip


def test_a_product_has_segments_as_rows_and_time_from_left_to_right() -> None:
    rule = PartitionByProduct({"day": DAILY, "airport": PartitionBySequence(["EWR", "JFK", "LGA"])})
    page = grid(rule)
    assert len(cells(page)) == 1095
    january = page.blocks[0]
    assert [row.segment for row in january.rows] == ["EWR", "JFK", "LGA"]
    assert [cell.key for cell in january.rows[1].cells if isinstance(cell, Cell)][:2] == [
        "2013-01-01|JFK",
        "2013-01-02|JFK",
    ]
    assert set(keys(page)) == set(texts(rule))


def test_a_product_with_time_in_the_second_place_has_the_keys_of_its_definition() -> None:
    rule = PartitionByProduct({"airport": PartitionBySequence(["a b", "c"]), "day": DAILY})
    assert set(keys(grid(rule, zoom="month", at="2013-05-01"))) == {
        key.text for key in rule.keys(date(2013, 5, 1), date(2013, 6, 1))
    }


def test_the_fall_back_day_has_twenty_five_cells_and_the_spring_day_a_gap() -> None:
    rule = PartitionByInterval("@hourly", timezone="Europe/Berlin", start=date(2026, 1, 1))
    october = grid(rule, zoom="month", at="2026-10-01").blocks[0]
    assert len(october.rows[24].cells) == 25
    march = grid(rule, zoom="month", at="2026-03-01").blocks[0]
    spring = march.rows[28].cells
    assert spring[2] is None
    assert isinstance(spring[3], Cell)
    assert spring[3].key == "2026-03-29T03:00+02:00"


def test_a_day_of_minutes_continues_on_the_next_page_without_losing_one() -> None:
    rule = PartitionByInterval("* * * * *", start=date(2026, 11, 1))
    page_keys: list[str] = []
    parts: list[str] = []
    address = "?zoom=day&at=2026-11-05"
    while "at=2026-11-05" in address:
        page_start = address.split("at=")[1]
        page = grid(rule, zoom="day", at=page_start)
        page_keys += keys(page)
        parts.append(page.part)
        address = page.following
    continued_at = page_start[-5:]
    assert parts == [f"until {continued_at}", f"from {continued_at}"]
    assert grid(rule, zoom="month", at="2026-11-01").part == ""
    assert page_keys == [key.text for key in rule.keys(date(2026, 11, 5), date(2026, 11, 6))]


@pytest.mark.parametrize("seconds", [10, 13, 50])
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", date(2024, 10, 27)),
        ("Europe/Berlin", date(2024, 3, 31)),
        ("Australia/Lord_Howe", date(2024, 4, 7)),
        ("Australia/Lord_Howe", date(2024, 10, 6)),
        ("America/New_York", date(2024, 11, 3)),
        ("America/New_York", date(2024, 3, 10)),
        # The repeated time crosses midnight, and belongs to the later date.
        ("America/St_Johns", date(2006, 10, 29)),
        ("Antarctica/Casey", date(2010, 3, 5)),
    ],
)
def test_the_parts_of_a_day_on_which_clocks_change_hold_each_window_once(
    zone: str, day: date, seconds: int
) -> None:
    first, stop = day - timedelta(days=1), day + timedelta(days=1)
    rule = PartitionByInterval(timedelta(seconds=seconds), timezone=zone, start=first, end=stop)
    page_keys: list[str] = []
    addresses: set[str] = set()
    at = day.isoformat()
    while at:
        page = grid(rule, zoom="day", at=at)
        page_keys += keys(page)
        at = parse_qs(page.following[1:])["at"][0] if page.following else ""
        assert at not in addresses, "a circle"
        addresses.add(at)
    listed = rule.keys()
    start = datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
    assert page_keys == [key.text for key in listed if key.time and key.time.start >= start]


def test_pages_of_segments_keep_the_part_of_the_day_and_parts_keep_the_page() -> None:
    minutes = PartitionByInterval("* * * * *", start=date(2026, 11, 1))
    rule = PartitionByProduct([minutes, PartitionBySequence(["a", "b", "c"])])
    first_part = grid(rule, zoom="day", at="2026-11-05")
    late_part = grid(rule, zoom="day", at=parse_qs(first_part.following[1:])["at"][0])
    assert late_part.part.startswith("from ")
    assert late_part.segments is not None
    query = parse_qs(late_part.segments.following[1:])
    assert query["at"] == parse_qs(late_part.here[1:])["at"]
    second_page = draw(layout(rule, GridRequest("day", query["at"][0], 2), CLOCK), {}, {})
    assert second_page.part == late_part.part
    assert set(keys(second_page)).isdisjoint(keys(late_part))
    for address in (second_page.previous, second_page.here):
        assert parse_qs(address[1:])["page"] == ["2"]


def test_chosen_windows_of_a_repeated_hour_that_crosses_midnight_are_of_one_day() -> None:
    rule = PartitionByInterval(
        timedelta(minutes=30), timezone="America/St_Johns", start=date(2009, 10, 1)
    )
    # At 00:01 clocks went back to 23:01 of the day before.
    repeated = ("2009-11-01T00:00-02:30", "2009-10-31T23:30-03:30")
    chosen = slicewise.PartitionSet.of(rule, map(rule.parse, repeated))
    extent = ChosenExtent(definition=rule, clock=CLOCK, chosen=chosen)
    assert extent.span == (date(2009, 11, 1), date(2009, 11, 1))


def test_a_part_that_ends_in_a_repeated_hour_names_the_offset() -> None:
    rule = PartitionByInterval(
        timedelta(seconds=10), timezone="Europe/Berlin", start=date(2024, 10, 1)
    )
    first_part = grid(rule, zoom="day", at="2024-10-27")
    assert first_part.part == "until 02:55 +02:00"
    second_part = grid(rule, zoom="day", at="2024-10-27T02:55+02:00")
    assert second_part.part.startswith("from 02:55 +02:00 until ")
    assert second_part.here.startswith("?zoom=day&at=2024-10-27T02:55%2B02:00")
    assert grid(rule, zoom="day", at="2024-10-27T02:55+01:00").part.startswith("from 02:55 +01:00")
    # An address from before names no offset.
    assert keys(grid(rule, zoom="day", at="2024-10-27T02:55")) == keys(second_part)


def test_zoomed_out_a_cell_has_the_share_of_each_state() -> None:
    rule = PartitionByInterval("@hourly", start=date(2026, 1, 1))
    page = layout(rule, GridRequest("year"), CLOCK)
    assert page.counts_unit == "day"
    counts = {(date(2026, 1, 5), ""): {"materialized": 20, "failed": 3}}
    cells_by_key = {
        cell.name: cell for cell in cells(draw(page, {}, counts)) if isinstance(cell, AggregateCell)
    }
    cell = cells_by_key["2026-01-05"]
    assert cell.title == "2026-01-05: 20 materialized, 3 failed, 1 missing"
    assert (cell.missing, cell.alarming, cell.look) == (1, True, None)
    assert cells_by_key["2026-12-24"].title == "2026-12-24: 24 not yet due"
    assert cells_by_key["2026-11-20"].not_yet_due == 12


@pytest.mark.parametrize("zoom", ["day", "month", "year", "all"])
@pytest.mark.parametrize("segments", [1, 3, 40, 5000])
@pytest.mark.parametrize(
    "cadence", ["* * * * *", "@hourly", "@daily", "@weekly", "@monthly", "@yearly"]
)
def test_no_page_has_more_cells_than_fit(zoom: str, segments: int, cadence: str) -> None:
    time = PartitionByInterval(cadence, start=date(1990, 1, 1))
    rule = PartitionByProduct([time, PartitionBySequence([f"store {n}" for n in range(segments)])])
    page = grid(rule, zoom=zoom, at="2020-02-03")
    assert 0 < len(cells(page)) <= MAX_CELLS


def test_segments_are_paged_and_all_of_them_are_reached() -> None:
    rule = PartitionBySequence([f"N{n}AA" for n in range(4000)])
    page_keys: list[str] = []
    number = 1
    while True:
        page = draw(layout(rule, GridRequest(page=number), CLOCK), {}, {})
        page_keys += keys(page)
        if page.segments is None or not page.segments.following:
            break
        number += 1
    assert page_keys == texts(rule)


def test_an_unpartitioned_asset_is_one_cell() -> None:
    page = grid(None)
    assert [cell.title for cell in cells(page)] == ["Unpartitioned: missing"]


@pytest.mark.parametrize("zoom", ["century", "month"])
@pytest.mark.parametrize("position", ["yesterday", "9999-12-31", "0001-01-01"])
def test_an_address_that_makes_no_sense_shows_something(zoom: str, position: str) -> None:
    assert grid(DAILY, zoom=zoom, at=position).title


def under(page: Grid, day: str, head: str) -> list[str]:
    """Return the keys of the cells of a day (as the row is labelled) below a column's head."""
    (block,) = page.blocks
    (row,) = (row for row in block.rows if row.label == day)
    at_head = [index for index, column in enumerate(block.columns) if column == head]
    return [cell.key for index in at_head if isinstance(cell := row.cells[index], Cell)]


def test_hours_stand_under_their_hour_of_the_wall_clock_on_a_day_that_changes() -> None:
    rule = PartitionByInterval("@hourly", timezone="America/New_York", start=date(2026, 1, 1))
    november = grid(rule, zoom="month", at="2026-11-01")
    assert under(november, "1 Su", "6") == ["2026-11-01T06:00-05:00"]
    assert under(november, "1 Su", "18") == ["2026-11-01T18:00-05:00"]
    assert under(november, "2 Mo", "6") == ["2026-11-02T06:00-05:00"]
    # The second pass has a column of its own with a head, right of the first pass.
    (block,) = november.blocks
    assert {len(row.cells) for row in block.rows} <= {len(block.columns)}
    again = block.columns.index("1 (2nd)")
    cell = block.rows[0].cells[again]
    assert isinstance(cell, Cell)
    assert cell.key == "2026-11-01T01:00-05:00"
    assert block.rows[1].cells[again] is None
    assert block.rows[0].absent_hours == set()
    assert all(row.absent_hours == {again} for row in block.rows[1:])
    assert block.note.startswith("1 (2nd): on 2026-11-01 clocks go back")
    # A month without a change has no such column, and on the spring day a gap at the lost hour.
    march = grid(rule, zoom="month", at="2026-03-01")
    assert len(march.blocks[0].columns) == 24
    assert under(march, "8 Su", "6") == ["2026-03-08T06:00-04:00"]
    assert march.blocks[0].rows[7].cells[2] is None
    absent_hours = [row.absent_hours for row in march.blocks[0].rows]
    assert absent_hours == [{2} if day == 8 else set() for day in range(1, 32)]
    april = grid(rule, zoom="month", at="2026-04-01").blocks[0]
    assert not april.note
    assert not any(row.absent_hours for row in april.rows)


def test_segments_by_hour_stand_under_their_hour_as_well() -> None:
    hours = PartitionByInterval("@hourly", timezone="America/New_York", start=date(2026, 1, 1))
    rule = PartitionByProduct({"hour": hours, "airport": PartitionBySequence(["EWR", "JFK"])})
    for day, count in (("2026-11-01", 25), ("2026-11-02", 24), ("2026-03-08", 24)):
        (block,) = grid(rule, zoom="day", at=day).blocks
        assert len(block.columns) == count
        cell = block.rows[1].cells[block.columns.index("6")]
        assert isinstance(cell, Cell)
        assert cell.key.startswith(f"{day}T06:00-0")
        absent_hours = {2} if day == "2026-03-08" else set()
        assert all(row.absent_hours == absent_hours for row in block.rows)


@pytest.mark.parametrize(
    ("segments", "is_short"),
    [
        (["EWR", "JFK"], True),
        (["EWR", "Frankfurt"], False),
        (["東京", "EWR"], True),
        (["東京都"], False),
    ],
)
def test_short_labels_of_segments_take_a_narrow_column(segments: list[str], is_short: bool) -> None:
    days = PartitionByInterval("@daily", start=date(2026, 1, 1))
    rule = PartitionByProduct({"day": days, "airport": PartitionBySequence(segments)})
    assert grid(rule, zoom="month", at="2026-01-01").has_short_labels is is_short
    assert not grid(days, zoom="month", at="2026-01-01").has_short_labels


def test_minutes_of_a_repeated_hour_are_rows_of_their_own() -> None:
    rule = PartitionByInterval("*/15 * * * *", timezone="America/New_York", start=date(2026, 1, 1))
    (block,) = grid(rule, zoom="day", at="2026-11-01").blocks
    assert {len(row.cells) for row in block.rows} == {4}
    assert [row.label for row in block.rows][:4] == [
        "00:00",
        "01:00 -04:00",
        "01:00 -05:00",
        "02:00",
    ]
    # Half an hour is repeated in the zone of Lord Howe: minutes stay below their minute.
    howe = PartitionByInterval(
        "*/15 * * * *", timezone="Australia/Lord_Howe", start=date(2026, 1, 1)
    )
    (block,) = grid(howe, zoom="day", at="2026-04-05").blocks
    assert [row.label for row in block.rows][1:4] == ["01:00 +11:00", "01:00 +10:30", "02:00"]
    assert block.rows[2].cells[:2] == [None, None]


def test_days_of_segments_stand_in_the_column_of_their_date() -> None:
    days = PartitionByInterval("@daily", start=date(2013, 1, 20), end=date(2013, 3, 5))
    rule = PartitionByProduct({"day": days, "airport": PartitionBySequence(["EWR", "JFK"])})
    blocks = grid(rule).blocks
    assert {len(block.columns) for block in blocks} == {31}
    first = blocks[0].rows[0].cells
    assert first[18] is None
    assert isinstance(first[19], Cell)
    assert first[19].key == "2013-01-20|EWR"
