"""The partition grid: the cells of each page, and the look of each cell.

The grid has two steps, so that the caller reads only the rows of the page, in a fixed number of
statements: `layout` returns the keys or the buckets of counts that the page needs, and `draw` makes
the cells. Zoomed-out pages of an asset use counts kept per bucket, and never count single
partitions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from partitions_app.grid import lists, periods, tables
from partitions_app.grid.cells import (
    MAX_SHARES,
    Cell,
    Grid,
    PartitionFact,
    SegmentPage,
    Zoom,
    ZoomLink,
    address,
    room_for,
)
from partitions_app.grid.extents import Extent
from partitions_app.grid.periods import Clock, Period, Unit, local_time_of, period_of, unit_of
from partitions_app.grid.share_cells import ASSET_LOOKS, Bucketed, ShareLooks
from slicewise import PartitionDefinition
from slicewise.partitions import TimeDefinition

_ZOOMS: dict[Unit, tuple[Zoom, ...]] = {
    "minute": ("day", "month", "year", "all"),
    "hour": ("day", "month", "year", "all"),
    "day": ("month", "year", "all"),
    "long": ("year", "all"),
}
_DEFAULT: dict[Unit, Zoom] = {"minute": "day", "hour": "month", "day": "year", "long": "all"}
_LABELS: dict[Zoom, str] = {"day": "Day", "month": "Month", "year": "Year", "all": "Years"}
_MIN_ROWS = 10


@dataclass(frozen=True, slots=True)
class GridRequest:
    """The values of the page's address; a missing or wrong value has a default."""

    zoom: str = ""
    at: str = ""
    page: int = 1


@dataclass(frozen=True)
class Layout:
    """One page of the grid, before any partition is read.

    The page needs either the partitions with ``keys``, or counts: buckets in ``[first, stop)`` of
    the period summed by ``counts_unit``, of ``segments`` (one empty segment for an asset without
    segments).
    """

    extent: Extent | None
    clock: Clock
    shape: tables.Shape
    period: Period | None = None
    keys: tuple[str, ...] = ()
    segments: tuple[str, ...] = ("",)
    segment_total: int = 1
    segment_first: int = 0
    rows: int = 1
    counts_unit: tables.CountsUnit | None = None
    cells: tables.Cells = field(default_factory=list)
    starts_at: datetime | None = None
    continues_at: datetime | None = None
    unit: Unit = "day"

    @property
    def definition(self) -> PartitionDefinition | None:
        """The partition definition; None for an unpartitioned asset."""
        return None if self.extent is None else self.extent.definition

    @property
    def time(self) -> TimeDefinition | None:
        """The partition definition of the time dimension."""
        return None if self.extent is None else self.extent.time

    @property
    def stretch(self) -> tuple[Period, TimeDefinition]:
        """The period and the definition of the time dimension; LookupError without time."""
        if self.period is None or self.time is None:
            raise LookupError("this page of the grid has no time in it")
        return self.period, self.time

    @property
    def has_segments(self) -> bool:
        """Whether the definition has dimensions other than time."""
        return self.definition is not None and bool(self.definition.segment_dimensions)


def layout(definition: PartitionDefinition | None, request: GridRequest, clock: Clock) -> Layout:
    """Return the layout of the requested page of all partitions of a definition."""
    return layout_of(None if definition is None else Extent(definition, clock), request, clock)


def layout_of(extent: Extent | None, request: GridRequest, clock: Clock) -> Layout:
    """Return the layout of the requested page; without an extent, of the one unpartitioned cell."""
    if extent is None:
        return Layout(None, clock, "list", keys=("",))
    if extent.time is None:
        return _list_page(extent, request, clock)
    unit = unit_of(extent.time)
    first, last = extent.span
    local_time = local_time_of(request.at, extent.time.timezone)
    page = Layout(extent, clock, "table", unit=unit)
    # In a period that needs several pages, each further page begins at a time.
    start = local_time if local_time and "T" in request.at else None
    requested_date = local_time.date() if local_time else last
    day = periods.date_of(start, extent.time.timezone) if start else requested_date
    period = period_of(_zoom(request.zoom, page), day)
    if period.zoom == "all":
        period = period.within(first, last)
    return _time_page(replace(page, period=period, starts_at=start), extent, request)


def draw(page: Layout, partitions: Mapping[str, PartitionFact], counts: Bucketed) -> Grid:
    """Draw the cells of a page, from the partitions that have rows and from counts per bucket."""
    return _draw(page, tables.cells_of_facts(page.definition, page.clock, partitions), counts)


def draw_chosen(
    page: Layout, cell_of: Callable[[str], Cell | None], counts: Bucketed, looks: ShareLooks
) -> Grid:
    """Draw the cells of a page, from a function that returns the cell of a key, and from counts of
    partitions in all states.
    """
    return _draw(page, lambda _, key: cell_of(key), counts, looks)


def _draw(
    page: Layout, cell_of: tables.CellOf, counts: Bucketed, looks: ShareLooks = ASSET_LOOKS
) -> Grid:
    if page.extent is None or page.time is None or page.period is None:
        blocks = lists.blocks(page.keys, lambda key: cell_of(None, key))
        return Grid(
            "",
            blocks,
            "list",
            segments=_segment_page(page),
            dimensions=_dimension_names(page),
            here=f"?page={_page_number(page)}",
        )
    sheet = tables.Sheet(
        extent=page.extent,
        period=page.period,
        unit=page.unit,
        segments=page.segments,
        has_segments=page.has_segments,
        looks=looks,
    )
    if page.counts_unit:
        blocks = sheet.share_blocks(page.counts_unit, counts)
    else:
        blocks = sheet.blocks_of(page.cells, cell_of)
    is_calendar = page.unit == "day" and not page.has_segments and page.counts_unit is None
    by_day = page.counts_unit == "day" and not page.has_segments
    return Grid(
        page.period.title,
        blocks,
        "calendar" if is_calendar or by_day else "table",
        part=page.period.part(page.starts_at, page.continues_at),
        zooms=_zoom_links(page),
        previous=_earlier(page),
        following=_later(page),
        segments=_segment_page(page),
        aggregated=page.counts_unit is not None,
        zone=page.time.timezone,
        dimensions=_dimension_names(page),
        time_name=page.extent.definition.space.time_name or "",
        here=_here(page),
    )


def _time_page(page: Layout, extent: Extent, request: GridRequest) -> Layout:
    period, _ = page.stretch
    definition, total = extent.definition, extent.segment_total
    text_length = len("2000-01-01" if page.unit == "day" else "2000-01-01T00:00Z")
    longest = "x" * text_length + "|" + lists.longest_segment(definition)
    # Keys with encoded characters have labels, which the names of cells show beside the key.
    room = room_for(longest, 3 if "%" in longest else 2, extent.address_bytes)
    rows = room // max(extent.window_count(period), 1)
    # The closest zoom shows each partition, on as many pages as necessary.
    is_exact = rows >= min(total, _MIN_ROWS) or period.zoom == _ZOOMS[page.unit][0]
    counts_unit = None if is_exact else tables.counts_unit(period, page.has_segments)
    if counts_unit:
        rows = MAX_SHARES // tables.columns(period, counts_unit)
    if page.has_segments:
        page = _with_segments(page, extent, request, max(rows, 1))
    if counts_unit:
        return replace(page, counts_unit=counts_unit)
    cells, next_start = tables.exact_cells(extent, period, page.segments, room, page.starts_at)
    keys = tuple(key for _, row in cells for _, key in row)
    return replace(page, cells=cells, keys=keys, continues_at=next_start)


def _with_segments(page: Layout, extent: Extent, request: GridRequest, rows: int) -> Layout:
    total = extent.segment_total
    first = min((request.page - 1) * rows, (total - 1) // rows * rows)
    segments = tuple(extent.segments(first, first + rows))
    return replace(page, segments=segments, segment_total=total, segment_first=first, rows=rows)


def _list_page(extent: Extent, request: GridRequest, clock: Clock) -> Layout:
    total = extent.segment_total
    # A key appears in the link, in the name, often beside a label, and as text in the cell.
    rows = room_for(lists.longest_segment(extent.definition) + "x" * 10, 4, extent.address_bytes)
    first = max(min((request.page - 1) * rows, (total - 1) // rows * rows), 0)
    keys = tuple(extent.segments(first, first + rows))
    page = Layout(extent, clock, "list", keys=keys, segments=keys, rows=rows)
    return replace(page, segment_total=total, segment_first=first)


def _dimension_names(page: Layout) -> tuple[str, ...]:
    return () if page.definition is None else tuple(d.name for d in page.definition.dimensions)


def _zoom(requested: str, page: Layout) -> Zoom:
    default = _DEFAULT[page.unit]
    if page.unit == "long" and page.has_segments:
        default = "year"
    return next((zoom for zoom in _ZOOMS[page.unit] if zoom == requested), default)


def _zoom_links(page: Layout) -> list[ZoomLink]:
    period, _ = page.stretch
    _, last = _span(page)
    # Zooming in leads to the latest period of this page that has partitions.
    target_date = min(max(last, period.first), period.days[-1])
    return [
        ZoomLink(zoom, _LABELS[zoom], address(zoom, target_date), zoom == period.zoom)
        for zoom in _ZOOMS[page.unit]
    ]


def _earlier(page: Layout) -> str:
    period, _ = page.stretch
    if page.starts_at:
        return address(period.zoom, period.first) + _segments_part(page)
    first, _ = _span(page)
    if period.first <= first:
        return ""
    return address(period.zoom, period.first - timedelta(days=1))


def _later(page: Layout) -> str:
    period, _ = page.stretch
    if page.continues_at:
        return period.address_of_part(page.continues_at) + _segments_part(page)
    _, last = _span(page)
    return address(period.zoom, period.stop) if period.stop <= last else ""


def _span(page: Layout) -> tuple[date, date]:
    if page.extent is None:
        raise LookupError("this page of the grid has no time in it")
    return page.extent.span


def _segment_page(page: Layout) -> SegmentPage | None:
    segment_count = len(page.segments)
    if page.segment_total <= segment_count or page.definition is None:
        return None
    first, stop = page.segment_first, page.segment_first + segment_count
    number = _page_number(page)
    return SegmentPage(
        first + 1,
        stop,
        page.segment_total,
        _page_address(page, number - 1) if first else "",
        _page_address(page, number + 1) if stop < page.segment_total else "",
    )


def _here(page: Layout) -> str:
    period, _ = page.stretch
    return f"{period.address_of_part(page.starts_at)}&page={_page_number(page)}"


def _page_number(page: Layout) -> int:
    """Return the page's number, which the first segment tells: all pages but the last are full."""
    return 1 if page.segment_first == 0 else -(-page.segment_first // page.rows) + 1


def _segments_part(page: Layout) -> str:
    """Return the part of an address that names the present page of segments."""
    number = _page_number(page)
    return f"&page={number}" if number > 1 else ""


def _page_address(page: Layout, number: int) -> str:
    if page.period is None:
        return f"?page={number}"
    return f"{page.period.address_of_part(page.starts_at)}&page={number}"
