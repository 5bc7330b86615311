"""The output of runs for pages: the end, and new blocks; both bounded."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.db.models.functions import Length

from assets_app.models import Run, RunLog

Cursor = tuple[int, int]
# A page has room for so much of a log: browsers lay out a hundred megabytes in minutes.
MOST_CHARACTERS = 256 * 1024
_MOST_BLOCKS = 200
LEVELS = {
    "": ("All levels", None),
    "warning": ("Warnings and errors", r"warn|error|critical|fatal|exception"),
    "error": ("Errors", r"error|critical|fatal|exception"),
}


class LogBlocks(NamedTuple):
    """Blocks of a log in order, and whether further ones are left out."""

    blocks: Sequence[RunLog]
    is_cut: bool


def log_tail(run: Run) -> LogBlocks:
    """Return the last blocks of the output of the run's attempts: two statements."""
    rows = RunLog.objects.filter(attempt__run=run).order_by("-attempt__number", "-sequence")
    chosen = blocks_within(rows, MOST_CHARACTERS)
    return LogBlocks(chosen.blocks[::-1], chosen.is_cut)


def log_after(run: Run, after: Cursor) -> LogBlocks:
    """Return the next blocks of the output of the run's attempts: two statements."""
    number, sequence = after
    later = Q(attempt__number__gt=number) | Q(attempt__number=number, sequence__gt=sequence)
    rows = RunLog.objects.filter(later, attempt__run=run)
    return blocks_within(rows.order_by("attempt__number", "sequence"), MOST_CHARACTERS)


def cursor_text(blocks: Sequence[RunLog], previous_text: str = "") -> str:
    """Return the place after the blocks as a text for addresses."""
    return f"{blocks[-1].attempt.number}.{blocks[-1].sequence}" if blocks else previous_text


def blocks_within(rows: QuerySet[RunLog], most: int) -> LogBlocks:
    """Return the first blocks that are no longer together than the characters: at least one."""
    sizes = list(rows.annotate(size=Length("text")).values_list("pk", "size")[: _MOST_BLOCKS + 1])
    chosen: list[int] = []
    room = most
    for pk, size in sizes[:_MOST_BLOCKS]:
        room -= size
        if chosen and room < 0:
            break
        chosen.append(pk)
    by_id = RunLog.objects.select_related("attempt").in_bulk(chosen)
    return LogBlocks([by_id[pk] for pk in chosen if pk in by_id], len(chosen) < len(sizes))
