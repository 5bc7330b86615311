"""The partition grid: which cells a page of it has, and how they look.

Two steps, so that whoever holds the rows can read just what is shown, in a fixed number of
statements: `layout` says which keys or which buckets of counts the page needs, `draw` makes cells.
What is zoomed out of is never counted slice by slice: it comes from counts kept per bucket.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from slicewise import PartitionByInterval, PartitionDefinition

from partitions_app import grid_lists, grid_tables
from partitions_app.grid_cells import (
    MAX_SHARES,
    Bucketed,
    Grid,
    SegmentPage,
    SliceFact,
    Zoom,
    ZoomLink,
    address,
    room_for,
)
from partitions_app.grid_time import Clock, Period, Unit, period_of, span_of, unit_of

_ZOOMS: dict[Unit, tuple[Zoom, ...]] = {
    "minute": ("day", "month", "year", "all"),
    "hour": ("day", "month", "year", "all"),
    "day": ("month", "year", "all"),
    "long": ("all",),
}
_DEFAULT: dict[Unit, Zoom] = {"minute": "day", "hour": "month", "day": "year", "long": "all"}
_LABELS: dict[Zoom, str] = {"day": "Day", "month": "Month", "year": "Year", "all": "Years"}
_WINDOWS_PER_DAY = {"minute": 1440, "hour": 24, "day": 1, "long": 1}
_ROWS_WANTED = 10


@dataclass(frozen=True, slots=True)
class GridRequest:
    """What the address asks for; what it does not say, or says wrongly, has a default."""

    zoom: str = ""
    at: str = ""
    page: int = 1


@dataclass(frozen=True)
class Layout:
    """One page of the grid, before anything is known of its partitions.

    Either ``keys`` are to be looked up, or ``counts_from``: buckets in ``[first, stop)`` summed by
    ``unit``, of ``segments`` (all there is, for an asset without).
    """

    definition: PartitionDefinition | None
    clock: Clock
    shape: grid_tables.Shape
    period: Period | None = None
    keys: tuple[str, ...] = ()
    segments: tuple[str, ...] = ("",)
    segment_total: int = 1
    segment_first: int = 0
    rows: int = 1
    counts_unit: grid_tables.CountsUnit | None = None
    cells: grid_tables.Cells = field(default_factory=list)
    unit: Unit = "day"

    @property
    def time(self) -> PartitionByInterval | None:
        """The dimension of time."""
        return None if self.definition is None else self.definition.time_dimension

    @property
    def has_segments(self) -> bool:
        """Whether cells are told apart by more than time."""
        return self.definition is not None and bool(self.definition.segment_dimensions)


def layout(
    definition: PartitionDefinition | None,
    request: GridRequest,
    clock: Clock,
    found: Sequence[str] = (),
) -> Layout:
    """The page that the request asks for; ``found`` are the keys of partitions found at run time."""
    if definition is None:
        return Layout(None, clock, "list", keys=("",))
    rule = definition.time_dimension
    if rule is None:
        if definition.kind == "runtime":
            return Layout(definition, clock, "list", keys=tuple(found))
        return _list_page(definition, request, clock)
    unit = unit_of(rule)
    first, last = span_of(rule, clock)
    zoom = _zoom(request.zoom, unit)
    period = period_of(zoom, _date(request.at) or last)
    return _time_page(Layout(definition, clock, "table", period, unit=unit), request)


def draw(page: Layout, slices: Mapping[str, SliceFact], counts: Bucketed) -> Grid:
    """The cells of a page, from the slices that have a row and from counts per bucket."""
    if page.time is None or page.period is None:
        blocks = grid_lists.blocks(page.keys, slices)
        return Grid("", blocks, "list", segments=_segment_page(page), dimensions=_names(page))
    sheet = grid_tables.Sheet(
        page.time, page.clock, page.period, page.unit, page.segments, page.has_segments
    )
    if page.counts_unit:
        blocks = sheet.share_blocks(page.counts_unit, counts)
    else:
        blocks = sheet.exact_blocks(page.cells, slices)
    calendar = page.unit == "day" and not page.has_segments and page.counts_unit is None
    by_day = page.counts_unit == "day" and not page.has_segments
    return Grid(
        page.period.title,
        blocks,
        "calendar" if calendar or by_day else "table",
        zooms=_zoom_links(page),
        previous=_neighbour(page, -1),
        following=_neighbour(page, 1),
        segments=_segment_page(page),
        aggregated=page.counts_unit is not None,
        zone=page.time.timezone,
        dimensions=_names(page),
    )


def _time_page(page: Layout, request: GridRequest) -> Layout:
    assert page.definition is not None and page.time is not None and page.period is not None  # noqa: S101
    total = grid_lists.segment_count(page.definition)
    windows_here = page.unit == "long" and 53 * len(page.period.years)
    windows_here = windows_here or len(page.period.days) * _WINDOWS_PER_DAY[page.unit]
    text = len("2000-01-01" if page.unit == "day" else "2000-01-01T00:00Z")
    widest = "x" * (text + _segment_width(page.definition))
    rows = room_for(widest) // max(windows_here, 1)
    exact = rows >= min(total, _ROWS_WANTED) or page.unit == "long" or page.period.zoom == "day"
    unit = None if exact else grid_tables.counts_unit(page.period, page.has_segments)
    if unit:
        rows = MAX_SHARES // grid_tables.columns(page.period, unit)
    page = _with_segments(page, request, total, max(rows, 1))
    if unit:
        return replace(page, counts_unit=unit)
    cells = grid_tables.exact_cells(
        page.definition, page.period, page.clock, page.segments, room_for(widest)
    )
    return replace(page, cells=cells, keys=tuple(key for _, row in cells for _, key in row))


def _with_segments(page: Layout, request: GridRequest, total: int, rows: int) -> Layout:
    if not page.has_segments:
        return page
    assert page.definition is not None  # noqa: S101
    first = min((request.page - 1) * rows, (total - 1) // rows * rows)
    chosen = tuple(grid_lists.segments(page.definition, first, first + rows))
    return replace(page, segments=chosen, segment_total=total, segment_first=first, rows=rows)


def _list_page(definition: PartitionDefinition, request: GridRequest, clock: Clock) -> Layout:
    total = grid_lists.segment_count(definition)
    (sample,) = grid_lists.segments(definition, 0, 1)
    rows = room_for(sample + "x" * 30)
    first = max(min((request.page - 1) * rows, (total - 1) // rows * rows), 0)
    keys = tuple(grid_lists.segments(definition, first, first + rows))
    found = Layout(definition, clock, "list", keys=keys, segments=keys, rows=rows)
    return replace(found, segment_total=total, segment_first=first)


def _segment_width(definition: PartitionDefinition) -> int:
    return sum(len(one) + 1 for one in grid_lists.segments(definition, 0, 1))


def _names(page: Layout) -> tuple[str, ...]:
    return () if page.definition is None else tuple(d.name for d in page.definition.dimensions)


def _zoom(asked: str, unit: Unit) -> Zoom:
    return next((zoom for zoom in _ZOOMS[unit] if zoom == asked), _DEFAULT[unit])


def _date(text: str) -> date | None:
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _zoom_links(page: Layout) -> list[ZoomLink]:
    assert page.period is not None and page.time is not None  # noqa: S101
    first, last = span_of(page.time, page.clock)
    # From a year, "month" leads to a month that has partitions: the last of the page.
    at = max(min(last, page.period.stop), page.period.first) if last >= page.period.first else None
    at = min(at or page.period.first, page.period.stop)
    if at == page.period.stop:
        at = page.period.days[-1]
    return [
        ZoomLink(zoom, _LABELS[zoom], address(zoom, at), zoom == page.period.zoom)
        for zoom in _ZOOMS[page.unit]
    ]


def _neighbour(page: Layout, step: int) -> str:
    assert page.period is not None and page.time is not None  # noqa: S101
    first, last = span_of(page.time, page.clock)
    if step < 0:
        if page.period.first <= first:
            return ""
        return address(page.period.zoom, date.fromordinal(page.period.first.toordinal() - 1))
    return address(page.period.zoom, page.period.stop) if page.period.stop <= last else ""


def _segment_page(page: Layout) -> SegmentPage | None:
    shown = len(page.segments)
    if page.segment_total <= shown or page.definition is None:
        return None
    first, stop = page.segment_first, page.segment_first + shown
    # Every page but the last one is full, so the number of this one follows from where it begins.
    number = 1 if first == 0 else -(-first // page.rows) + 1
    return SegmentPage(
        first + 1,
        stop,
        page.segment_total,
        _page_address(page, number - 1) if first else "",
        _page_address(page, number + 1) if stop < page.segment_total else "",
    )


def _page_address(page: Layout, number: int) -> str:
    if page.period is None:
        return f"?page={number}"
    return f"{address(page.period.zoom, page.period.first)}&page={number}"
