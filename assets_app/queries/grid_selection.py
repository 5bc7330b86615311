"""Selections on a page of the grid: the cells that a text selects, and texts that select states.

The selection grammar alone decides: pages mark the cells that the text names, and a button that
selects failed partitions writes a text.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice, takewhile

from assets_app.models import Asset, AssetPartition, PartitionState
from assets_app.queries.grid import clock_of
from assets_app.queries.grid_overdue import overdue_keys
from assets_app.queries.grid_stale import stale_keys
from assets_app.queries.keys import known_partitions
from partitions_app.grid.cells import Cell, Grid
from partitions_app.grid.layouts import GridRequest, Layout, draw, layout
from partitions_app.grid.lists import key_texts
from partitions_app.grid.periods import midnight, period_of, windows_starting
from partitions_app.grid.share_cells import AggregateCell
from partitions_app.grid.tables import CountsUnit
from slicewise import PartitionDefinition, PartitionSet
from slicewise.partitions import LONGEST_SELECTION
from slicewise_server.web.request_errors import InvalidRequest

# The states that a button selects.
SELECTED_STATES = ("failed", "overdue", "missing", "stale")
# Zoomed-out pages may stand for millions of partitions.
MOST_SELECTED = 20_000
# Runs of cells on a page: the numbers of the first and the last cell of each run.
Runs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Marks:
    """The selected cells of a page, and the number of selected partitions, on the page or not.

    ``text`` is another text of the selection, where the asked text selects more than is meant.
    """

    runs: Runs
    count: int
    text: str | None = None


NO_MARKS = Marks([], 0)


def marks_of(asset: Asset, request: GridRequest, selection: str, now: datetime) -> Marks:
    """Return the cells of a page that a selection names; cells count in the order of the page.

    A zoomed-out cell is selected if some of its partitions are. One statement at most. Raises
    InvalidRequest on ``selection``.
    """
    if asset.definition is None or not selection.strip():
        return NO_MARKS
    page = layout(asset.definition, request, clock_of(asset, now))
    return marks_on(page, draw(page, {}, {}), selection)


def marks_on(page: Layout, grid: Grid, selection: str) -> Marks:
    """Return the cells of a drawn page that a selection names. Raises InvalidRequest on
    ``selection``.
    """
    if page.definition is None or not selection.strip():
        return NO_MARKS
    return marks_of_selected(page, grid, selected_by_text(page.definition, selection))


def marks_of_selected(page: Layout, grid: Grid, selected: PartitionSet) -> Marks:
    """Return the cells of a drawn page that a set of partitions selects."""
    definition = page.definition
    if page.counts_unit:
        is_selected = list(_selected_shares(page, page.counts_unit, grid, selected))
    else:
        is_selected = [
            definition is not None
            and isinstance(cell, Cell)
            and definition.parse(cell.key) in selected
            for cell in grid.cells
        ]
    return Marks(_runs(is_selected), len(selected))


def selected_text(asset: Asset, request: GridRequest, grid: Grid, state: str, now: datetime) -> str:
    """Return a selection of the partitions of a page that have a state, or an empty text for none.

    ``grid`` is the drawn page. Raises InvalidRequest on ``selection`` for more partitions than a
    text can name.
    """
    definition = asset.definition
    if definition is None or state not in SELECTED_STATES:
        return ""
    if grid.aggregated:
        page = layout(definition, request, clock_of(asset, now))
        selected = _selected_in_period(asset, definition, page, state, now)
    else:
        keys = [
            cell.key for cell in grid.cells if isinstance(cell, Cell) and cell.counted_as == state
        ]
        selected = known_partitions(definition, keys)
    return short_text(selected)


def selected_by_text(definition: PartitionDefinition, selection: str) -> PartitionSet:
    """Return the partitions that a text selects. Raises InvalidRequest on ``selection``."""
    try:
        return definition.select(selection)
    except ValueError as error:
        raise InvalidRequest({"selection": str(error)}) from error


def _selected_shares(
    page: Layout, unit: CountsUnit, grid: Grid, selected: PartitionSet
) -> Iterator[bool]:
    """Yield whether a selected window starts in each cell of a page with cells of a unit."""
    _, time_definition = page.stretch
    zone = time_definition.timezone
    starts: dict[str, list[tuple[datetime, datetime]]] = {}
    for key_range in selected.ranges:
        if key_range.first is not None and key_range.last is not None:
            for segment in key_range.segments:
                ends = (key_range.first.start, key_range.last.start)
                starts.setdefault(segment, []).append(ends)
    for block in grid.blocks:
        for row in block.rows:
            spans = starts.get(row.segment or "", [])
            for cell in filter(None, row.cells):
                assert isinstance(cell, AggregateCell)  # noqa: S101  (the page is zoomed out)
                period = period_of(unit, cell.start or date.min)
                yield _overlaps(spans, midnight(period.first, zone), midnight(period.stop, zone))


def _overlaps(spans: Sequence[tuple[datetime, datetime]], first: datetime, stop: datetime) -> bool:
    """Return whether one of the sorted spans of starts has a start in [first, stop)."""
    index = bisect_left(spans, first, key=lambda span: span[1])
    return index < len(spans) and spans[index][0] < stop


def _selected_in_period(
    asset: Asset, definition: PartitionDefinition, page: Layout, state: str, now: datetime
) -> PartitionSet:
    """Return the failed, the stale, the overdue, or the other missing partitions of a zoomed-out
    page.
    """
    period, time_definition = page.stretch
    zone = time_definition.timezone
    rows = AssetPartition.objects.filter(
        asset=asset,
        identity=asset.identity,
        window_start__gte=midnight(period.first, zone),
        window_start__lt=midnight(period.stop, zone),
    )
    if page.has_segments:
        rows = rows.filter(segment__in=page.segments)
    if state == "failed":
        failed_keys = rows.failed_now().values_list("key", flat=True)
        return selected_by_keys(definition, failed_keys[: MOST_SELECTED + 1])
    if state == "stale":
        return _known(definition, stale_texts(asset, page))
    overdue = selected_by_keys(definition, overdue_keys(asset, page, now, MOST_SELECTED + 1))
    if state == "overdue":
        return overdue
    settled = rows.exclude(state=PartitionState.MISSING, held_by__isnull=True)
    expected = selected_by_keys(
        definition, islice(_ended_keys(definition, page), MOST_SELECTED + 1)
    )
    return expected - _known(definition, settled.values_list("key", flat=True)) - overdue


def _ended_keys(definition: PartitionDefinition, page: Layout) -> Iterator[str]:
    """Yield the keys of the page's windows that have ended."""
    period, time_definition = page.stretch
    windows = windows_starting(time_definition, period.first, period.stop, page.clock)
    for window in takewhile(lambda window: window.end <= page.clock.now, windows):
        yield from key_texts(definition, window.text, page.segments)


def stale_texts(asset: Asset, page: Layout | None) -> list[str]:
    """Return the keys of the stale partitions of a page, or of the asset, in order of time. Raises
    InvalidRequest where too many are perhaps stale.
    """
    texts = stale_keys(asset, page, MOST_SELECTED)
    if texts is None:
        raise too_many()
    return texts


def selected_by_keys(definition: PartitionDefinition, texts: Iterable[str]) -> PartitionSet:
    """Return the partitions of texts that were read up to a limit. Raises InvalidRequest where the
    limit was reached: a selection is never silently a part.
    """
    texts = list(texts)
    if len(texts) > MOST_SELECTED:
        raise too_many()
    return _known(definition, texts)


def _known(definition: PartitionDefinition, texts: Iterable[str]) -> PartitionSet:
    partitions = known_partitions(definition, texts)
    if len(partitions) > MOST_SELECTED:
        raise too_many()
    return partitions


def short_text(partitions: PartitionSet) -> str:
    """Return the text of a selection. Raises InvalidRequest on ``selection`` for a text that is too
    long to be a selection.
    """
    if len(partitions.text) > LONGEST_SELECTION:
        raise InvalidRequest(
            {"selection": "These partitions are too scattered for one selection: zoom in."}
        )
    return partitions.text


def selection_error(refused: InvalidRequest) -> str:
    """Return the error on ``selection``."""
    return refused.errors["selection"][0]


def too_many() -> InvalidRequest:
    """Return the error for more partitions than are read for a selection."""
    return InvalidRequest(
        {"selection": f"More than {MOST_SELECTED:,} partitions: zoom in, or type a selection."}
    )


def _runs(is_selected: Sequence[bool]) -> Runs:
    runs: Runs = []
    for index, selected in enumerate(is_selected):
        if not selected:
            continue
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs
