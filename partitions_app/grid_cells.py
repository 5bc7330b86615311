"""What a grid is drawn from and what it draws: facts in, blocks of cells out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal
from urllib.parse import quote, urlencode

from partitions_app.looks import (
    FAILED,
    MATERIALIZED,
    MISSING,
    NOT_YET_DUE,
    RUNNING,
    Look,
    look_of_partition,
)

# A page of cells stays below this many bytes of markup, and this many cells, whatever the history.
CELL_BUDGET_BYTES = 118_000
MAX_CELLS = 1_500
MAX_SHARES = 440
Zoom = Literal["day", "month", "year", "all"]


@dataclass(frozen=True, slots=True)
class SliceFact:
    """What became of one partition; ``run_state`` is that of the run that holds it, if any.

    ``because`` says what a stale one was made from and has changed since, where there is room.
    """

    state: str
    run_state: str | None = None
    is_stale: bool = False
    because: str = ""


# Settled states, and "held", to how many partitions of a stretch of time are in it.
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """One partition; ``label`` is what people are shown for its key, ``inside`` what is drawn."""

    look: Look
    key: str
    label: str = ""
    inside: str = ""
    because: str = ""

    @property
    def href(self) -> str:
        """Relative to the asset's page: a thousand links need not repeat its address."""
        return f"partitions/{quote(self.key, safe=':+')}/" if self.key else "partitions/"

    @property
    def title(self) -> str:
        """What it is and how it stands, in words; with its key, where that is something else."""
        said = f"{name_with_key(self.label, self.key)}: {self.look.label.lower()}"
        return f"{said}: {self.because}" if self.because else said


@dataclass(frozen=True, slots=True)
class Share:
    """One piece of a cell that stands for many: where it begins and how wide it is, of 100."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class ShareCell:
    """Many partitions: how many of them are in which state."""

    name: str
    expected: int
    not_yet_due: int
    counts: Counts
    href: str
    inside: str = ""

    @property
    def missing(self) -> int:
        """Those that should exist and to which nothing ever happened, or nothing that lasted."""
        known = sum(count for state, count in self.counts.items() if state != "missing")
        return max(self.expected - self.not_yet_due - known, 0)

    @property
    def look(self) -> Look | None:
        """The one look of all of them, if they have one."""
        present = {state: count for state, count in self.counts.items() if count}
        present.pop("missing", None)
        if not present and not self.missing:
            return NOT_YET_DUE
        if not present:
            return MISSING
        if self.missing or len(present) > 1:
            return None
        (state,) = present
        return RUNNING if state == "held" else look_of_partition(state)

    @property
    def alarming(self) -> bool:
        """Whether something in it failed."""
        return bool(self.counts.get("failed"))

    @property
    def shares(self) -> list[Share]:
        """Materialized, failed, running and other, from left to right; what is missing is blank."""
        counts = self.counts
        other = counts.get("canceled", 0) + counts.get("skipped", 0)
        pieces = (
            ("good", counts.get("materialized", 0)),
            ("bad", counts.get("failed", 0)),
            ("info", counts.get("held", 0)),
            ("other", other),
        )
        whole = max(self.expected, sum(count for _, count in pieces), 1)
        shares, x = [], 0.0
        for css, count in pieces:
            if count:
                width = round(100 * count / whole, 1)
                shares.append(Share(css, round(x, 1), width))
                x += width
        return shares

    @property
    def title(self) -> str:
        """What it is and how its partitions stand, in words."""
        counted = [
            (self.counts.get("materialized", 0), MATERIALIZED.label),
            (self.counts.get("failed", 0), FAILED.label),
            (self.counts.get("held", 0), RUNNING.label),
            (self.counts.get("canceled", 0), "Canceled"),
            (self.counts.get("skipped", 0), "Skipped"),
            (self.missing, MISSING.label),
            (self.not_yet_due, NOT_YET_DUE.label),
        ]
        said = ", ".join(f"{count:,} {label.lower()}" for count, label in counted if count)
        return f"{self.name}: {said or 'no partitions'}"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells from left to right; None where there is no partition."""

    cells: Sequence[Cell | ShareCell | None]
    label: str = ""
    segment: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Rows under one title."""

    title: str
    rows: Sequence[Row]
    columns: Sequence[str] = ()
    href: str = ""

    @property
    def labelled(self) -> bool:
        """Whether its rows begin with a label."""
        return any(row.label for row in self.rows)


@dataclass(frozen=True, slots=True)
class ZoomLink:
    """One zoom that the grid has."""

    name: Zoom
    label: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class SegmentPage:
    """Which segments are rows here, and the addresses of the others."""

    first: int
    last: int
    total: int
    previous: str = ""
    following: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A drawn page of the grid."""

    title: str
    blocks: Sequence[Block]
    shape: Literal["calendar", "table", "list"]
    zooms: Sequence[ZoomLink] = ()
    previous: str = ""
    following: str = ""
    segments: SegmentPage | None = None
    aggregated: bool = False
    zone: str = ""
    dimensions: Sequence[str] = field(default_factory=tuple)

    @property
    def dimensions_json(self) -> str:
        """Names of the dimensions, for the script that writes selections."""
        return json.dumps(list(self.dimensions))

    @property
    def empty(self) -> bool:
        """Whether there is not one cell."""
        return not any(cell for block in self.blocks for row in block.rows for cell in row.cells)


Bucketed = Mapping[tuple[date, str], Counts]


def name_with_key(label: str, key: str) -> str:
    """Return the name of a partition in running text, with its key where the two differ."""
    if not key:
        return "Unpartitioned"
    # Labels of products have room around the bars, and that alone is not worth saying twice.
    return key if label.replace(" | ", "|") in ("", key) else f"{label} ({key})"


def address(zoom: Zoom, at: date) -> str:
    """Return the query string of a page of the grid: of a date, or of a local time within a day."""
    text = at.isoformat(timespec="minutes") if isinstance(at, datetime) else at.isoformat()
    return "?" + urlencode({"zoom": zoom, "at": text}, safe=":")


def room_for(longest_key: str, copies: int = 2) -> int:
    """Return how many cells fit a page where each cell has so many copies of such a key."""
    size = 72 + copies * len(quote(longest_key, safe=":+"))
    return max(min(MAX_CELLS, CELL_BUDGET_BYTES // size), 1)
