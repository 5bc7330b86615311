"""The output of runs for pages: the end, new blocks, and a search; each bounded."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.db.models.functions import Length

from assets_app.models import Run, RunLog
from slicewise.texts import masked_text

Cursor = tuple[int, int]
# A page has room for so much of a log: browsers lay out a hundred megabytes in minutes.
MOST_CHARACTERS = 256 * 1024
_MOST_BLOCKS = 200
# One request looks through so much of a log, from the end on.
_MOST_SEARCHED = 4 * 1024 * 1024
# More lines are shown only where one block has more.
_MOST_LINES = 500
LEVELS = {
    "": ("All levels", None),
    "warning": ("Warnings and errors", r"warn|error|critical|fatal|exception"),
    "error": ("Errors", r"error|critical|fatal|exception"),
}


class LogBlocks(NamedTuple):
    """Blocks of a log in order, and whether further ones are left out."""

    blocks: Sequence[RunLog]
    is_cut: bool


class LogLines(NamedTuple):
    """The lines of a log that match, in order, and the place from which earlier ones are searched;
    None where the whole log was searched.
    """

    lines: Sequence[str]
    before: Cursor | None


def log_tail(run: Run) -> LogBlocks:
    """Return the last blocks of the output of the run's attempts: two statements."""
    rows = RunLog.objects.filter(attempt__run=run).order_by("-attempt__number", "-sequence")
    chosen = _within(rows, MOST_CHARACTERS)
    return LogBlocks(chosen.blocks[::-1], chosen.is_cut)


def log_after(run: Run, after: Cursor) -> LogBlocks:
    """Return the next blocks of the output of the run's attempts: two statements."""
    number, sequence = after
    later = Q(attempt__number__gt=number) | Q(attempt__number=number, sequence__gt=sequence)
    rows = RunLog.objects.filter(later, attempt__run=run)
    return _within(rows.order_by("attempt__number", "sequence"), MOST_CHARACTERS)


def search_log(run: Run, text: str, level: str, before: Cursor | None = None) -> LogLines:
    """Return the last lines that contain the text, in any case, and are of the level.

    Lines are searched as pages show them: a secret that is masked is not found.
    """
    rows = RunLog.objects.filter(attempt__run=run)
    if before is not None:
        number, sequence = before
        rows = rows.filter(
            Q(attempt__number__lt=number) | Q(attempt__number=number, sequence__lt=sequence)
        )
    chosen = _within(rows.order_by("-attempt__number", "-sequence"), _MOST_SEARCHED)
    matching: list[str] = []
    last: Cursor | None = None
    for block in chosen.blocks:
        lines = list(_matching(block.text, text, level))
        if matching and len(matching) + len(lines) > _MOST_LINES:
            return LogLines(matching, last)
        matching = [*lines, *matching]
        last = (block.attempt.number, block.sequence)
    return LogLines(matching, last if chosen.is_cut else None)


def cursor_text(blocks: Sequence[RunLog], previous_text: str = "") -> str:
    """Return the place after the blocks as a text for addresses."""
    return f"{blocks[-1].attempt.number}.{blocks[-1].sequence}" if blocks else previous_text


def _within(rows: QuerySet[RunLog], most: int) -> LogBlocks:
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


def _matching(block: str, text: str, level: str) -> Iterator[str]:
    _, level_words = LEVELS[level]
    of_level = re.compile(level_words, re.IGNORECASE) if level_words else None
    searched_text = text.casefold()
    for line in masked_text(block).splitlines():
        if searched_text in line.casefold() and (of_level is None or of_level.search(line)):
            yield line
