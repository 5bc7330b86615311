"""Values of the grid: facts about partitions as input, and blocks of cells as output."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, NamedTuple
from unicodedata import east_asian_width
from urllib.parse import quote, urlencode

from partitions_app.grid.share_cells import AggregateCell
from partitions_app.state_badges import CANCELED, FAILED, LATE, MISSING, SKIPPED, STALE, StateBadge

# A page of cells stays below this many bytes of markup, and this many cells, with any history.
CELL_BUDGET_BYTES = 118_000
MAX_CELLS = 1_500
MAX_SHARES = 440
# So many letters have room in the narrow column of labels (`short-labels` of the style sheet).
_SHORT_LABEL = 4
_GIVEN_UP = (FAILED.name, CANCELED.name, SKIPPED.name)
Zoom = Literal["day", "month", "year", "all"]


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """The state of one partition; ``run_state`` is the state of the run that claims the partition,
    if any; ``version`` is the version of the partition's data, 0 without data.

    ``because`` names changed upstream partitions of a stale partition, where there is room.
    """

    state: str
    run_state: str | None = None
    version: int = 0
    is_stale: bool = False
    because: str = ""
    # "late" or "overdue" for a partition that is not there in time.
    lateness: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One partition; ``label`` is the key's label for people, ``inside`` the text in the cell."""

    look: StateBadge
    key: str
    label: str = ""
    inside: str = ""
    because: str = ""

    @property
    def href(self) -> str:
        """The address relative to the asset's page: a thousand links need not repeat the rest."""
        return f"partitions/{quote(self.key, safe=':+')}/" if self.key else "partitions/"

    @property
    def counted_as(self) -> str:
        """The state that counts and buttons have: late is missing still, overdue is not."""
        return MISSING.name if self.look is LATE else self.look.name

    @property
    def title(self) -> str:
        """The name and the state in words, with the key where the key differs from the name."""
        text = f"{name_with_key(self.label, self.key)}: {self.look.label.lower()}"
        return f"{text}: {self.because}" if self.because else text


@dataclass(frozen=True, slots=True)
class Row:
    """Cells from left to right; None where there is no partition."""

    cells: Sequence[Cell | AggregateCell | None]
    label: str = ""
    segment: str | None = None
    # The columns of hours that the clock does not show on the day of the row.
    absent_hours: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Block:
    """Rows under one title, with a note below for people."""

    title: str
    rows: Sequence[Row]
    columns: Sequence[str] = ()
    href: str = ""
    note: str = ""

    @property
    def labelled(self) -> bool:
        """Whether any row begins with a label."""
        return any(row.label for row in self.rows)


@dataclass(frozen=True, slots=True)
class ZoomLink:
    """A link to one zoom of the grid."""

    name: Zoom
    label: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class SegmentPage:
    """The segments that are rows on this page, and the addresses of pages with other segments."""

    first: int
    last: int
    total: int
    previous: str = ""
    following: str = ""


class SelectButton(NamedTuple):
    """A button that selects the partitions of the page in one state, with their number; at least
    so many where ``is_cut``.
    """

    state: str
    number: int
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """A drawn page of the grid; ``part`` names the part of the period that is on the page, where
    the period needs several pages.
    """

    title: str
    blocks: Sequence[Block]
    shape: Literal["calendar", "table", "list"]
    part: str = ""
    zooms: Sequence[ZoomLink] = ()
    previous: str = ""
    following: str = ""
    segments: SegmentPage | None = None
    aggregated: bool = False
    zone: str = ""
    dimensions: Sequence[str] = field(default_factory=tuple)
    time_name: str = ""
    # The query string of this page.
    here: str = ""
    # What the page adds to each address of another page of the grid.
    suffix: str = ""
    # Whether cells have more stale partitions than they count.
    is_stale_cut: bool = False

    @property
    def state_counts(self) -> dict[str, int]:
        """The number of partitions on this page by the name of the look; of zoomed-out pages
        without materialized, running and future partitions.
        """
        counts: Counter[str] = Counter()
        for cell in self.cells:
            if isinstance(cell, Cell):
                counts[cell.counted_as] += 1
            else:
                settled = {state: cell.counts.get(state, 0) for state in _GIVEN_UP}
                counts += Counter(settled)
                counts += Counter(stale=cell.stale, overdue=cell.overdue, missing=cell.missing)
        return dict(counts)

    def select_buttons(self, states: Sequence[str]) -> list[SelectButton]:
        """Return a button for each of these states that a partition of the page has."""
        counts = self.state_counts
        return [
            SelectButton(state, counts[state], state == STALE.name and self.is_stale_cut)
            for state in states
            if counts.get(state)
        ]

    @property
    def cells(self) -> Iterator[Cell | AggregateCell]:
        """The cells in the order of the page."""
        return (cell for block in self.blocks for row in block.rows for cell in row.cells if cell)

    @property
    def has_segment_rows(self) -> bool:
        """Whether each row has one segment."""
        return any(row.segment is not None for block in self.blocks for row in block.rows)

    @property
    def has_short_labels(self) -> bool:
        """Whether all rows have one segment each, with a label of few letters."""
        labels = [row.label for block in self.blocks for row in block.rows]
        return self.has_segment_rows and all(map(_is_short, labels))

    @property
    def dimensions_json(self) -> str:
        """Names of the dimensions, for the script that writes selections."""
        return json.dumps(list(self.dimensions))

    @property
    def empty(self) -> bool:
        """Whether the grid has no cell."""
        return next(self.cells, None) is None


def _is_short(label: str) -> bool:
    return sum(1 + (east_asian_width(letter) in "FW") for letter in label) <= _SHORT_LABEL


def name_with_key(label: str, key: str) -> str:
    """Return the name of a partition in running text, with the key if name and key differ."""
    if not key:
        return "Unpartitioned"
    # Labels of products have blanks around the bars: a difference too small to repeat the key.
    return key if label.replace(" | ", "|") in ("", key) else f"{label} ({key})"


def address(zoom: Zoom, start: date) -> str:
    """Return the query string of a page of the grid: of a date, or of a local time within a day,
    with the offset if the time has one.
    """
    text = start.isoformat()
    if isinstance(start, datetime):
        text = start.isoformat(timespec="seconds" if start.second else "minutes")
    return "?" + urlencode({"zoom": zoom, "at": text}, safe=":")


def room_for(longest_key: str, copies: int = 2, more_bytes: int = 0) -> int:
    """Return the number of cells that fit a page if each cell has so many copies of such a key, and
    so many bytes more.
    """
    size = 72 + copies * len(quote(longest_key, safe=":+")) + more_bytes
    return max(min(MAX_CELLS, CELL_BUDGET_BYTES // size), 1)
