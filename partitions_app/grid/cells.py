"""Values of the grid: facts about partitions as input, and blocks of cells as output."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal
from urllib.parse import quote, urlencode

from partitions_app.state_badges import (
    FAILED,
    MATERIALIZED,
    MISSING,
    NOT_YET_DUE,
    RUNNING,
    StateBadge,
    badge_of_partition,
)

# A page of cells stays below this many bytes of markup, and this many cells, with any history.
CELL_BUDGET_BYTES = 118_000
MAX_CELLS = 1_500
MAX_SHARES = 440
Zoom = Literal["day", "month", "year", "all"]


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """The state of one partition; ``run_state`` is the state of the run that claims the partition,
    if any.

    ``because`` names changed upstream partitions of a stale partition, where there is room.
    """

    state: str
    run_state: str | None = None
    is_stale: bool = False
    because: str = ""


# The number of partitions of a period in each settled state, and in "held": claimed by a run.
Counts = Mapping[str, int]


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
    def title(self) -> str:
        """The name and the state in words, with the key where the key differs from the name."""
        text = f"{name_with_key(self.label, self.key)}: {self.look.label.lower()}"
        return f"{text}: {self.because}" if self.because else text


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a cell of many partitions that has one state: offset and width, in percent."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class AggregateCell:
    """A cell of many partitions, with the number of partitions in each state."""

    name: str
    expected: int
    not_yet_due: int
    counts: Counts
    href: str
    inside: str = ""

    @property
    def missing(self) -> int:
        """The number of partitions that should exist by now, minus partitions in another state."""
        counted = sum(count for state, count in self.counts.items() if state != "missing")
        return max(self.expected - self.not_yet_due - counted, 0)

    @property
    def look(self) -> StateBadge | None:
        """The look of all partitions of the cell; None for partitions in different states."""
        present = {state: count for state, count in self.counts.items() if count}
        present.pop("missing", None)
        if not present and not self.missing:
            return NOT_YET_DUE
        if not present:
            return MISSING
        if self.missing or len(present) > 1:
            return None
        (state,) = present
        return RUNNING if state == "held" else badge_of_partition(state)

    @property
    def alarming(self) -> bool:
        """Whether a partition of the cell failed."""
        return bool(self.counts.get("failed"))

    @property
    def shares(self) -> list[Share]:
        """Materialized, failed, running and other, from left to right; missing is blank."""
        counts = self.counts
        other_count = counts.get("canceled", 0) + counts.get("skipped", 0)
        class_counts = (
            ("good", counts.get("materialized", 0)),
            ("bad", counts.get("failed", 0)),
            ("info", counts.get("held", 0)),
            ("other", other_count),
        )
        total = max(self.expected, sum(count for _, count in class_counts), 1)
        shares, x = [], 0.0
        for css, count in class_counts:
            if count:
                width = round(100 * count / total, 1)
                shares.append(Share(css, round(x, 1), width))
                x += width
        return shares

    @property
    def title(self) -> str:
        """The name of the cell and the number of partitions in each state, in words."""
        label_counts = [
            (self.counts.get("materialized", 0), MATERIALIZED.label),
            (self.counts.get("failed", 0), FAILED.label),
            (self.counts.get("held", 0), RUNNING.label),
            (self.counts.get("canceled", 0), "Canceled"),
            (self.counts.get("skipped", 0), "Skipped"),
            (self.missing, MISSING.label),
            (self.not_yet_due, NOT_YET_DUE.label),
        ]
        text = ", ".join(f"{count:,} {label.lower()}" for count, label in label_counts if count)
        return f"{self.name}: {text or 'no partitions'}"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells from left to right; None where there is no partition."""

    cells: Sequence[Cell | AggregateCell | None]
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
        """Whether the grid has no cell."""
        return not any(cell for block in self.blocks for row in block.rows for cell in row.cells)


Bucketed = Mapping[tuple[date, str], Counts]


def name_with_key(label: str, key: str) -> str:
    """Return the name of a partition in running text, with the key if name and key differ."""
    if not key:
        return "Unpartitioned"
    # Labels of products have blanks around the bars: a difference too small to repeat the key.
    return key if label.replace(" | ", "|") in ("", key) else f"{label} ({key})"


def address(zoom: Zoom, start: date) -> str:
    """Return the query string of a page of the grid: of a date, or of a local time within a day."""
    text = start.isoformat(timespec="minutes") if isinstance(start, datetime) else start.isoformat()
    return "?" + urlencode({"zoom": zoom, "at": text}, safe=":")


def room_for(longest_key: str, copies: int = 2) -> int:
    """Return the number of cells that fit a page if each cell has so many copies of such a key."""
    size = 72 + copies * len(quote(longest_key, safe=":+"))
    return max(min(MAX_CELLS, CELL_BUDGET_BYTES // size), 1)
