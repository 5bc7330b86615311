"""The search of a log: the lines that match, with the lines around each match, bounded."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Q, QuerySet

from assets_app.models import Run, RunAttempt, RunLog
from assets_app.queries.run_logs import LEVELS, Cursor, blocks_within
from slicewise.texts import masked_text

# The numbers of lines before and after each match that a reader may choose.
AROUND = (0, 3, 10)
DEFAULT_AROUND = 3
# One request looks through so much of a log, from the end on.
_MOST_SEARCHED = 4 * 1024 * 1024
# More matching lines are shown only where one block has more.
_MOST_LINES = 500


class LogLine(NamedTuple):
    """A line of a log, and whether the line matches or is beside a match."""

    text: str
    is_match: bool


class LogPassage(NamedTuple):
    """Successive lines of one attempt; a passage with ``is_first`` is the first of the attempt."""

    attempt: RunAttempt
    lines: Sequence[LogLine]
    is_first: bool


class LogMatches(NamedTuple):
    """The matching lines in order, as passages with the lines around the matches, and the place
    from which earlier lines are searched; None if the whole log was searched.
    """

    passages: Sequence[LogPassage]
    line_count: int
    before: Cursor | None


class _SearchedBlock(NamedTuple):
    """The lines of a block as pages show the lines, and the places of the matching lines.

    A block with ``is_beside`` is read for the lines around the matches of other blocks alone.
    """

    block: RunLog
    lines: Sequence[str]
    matches: Sequence[int]
    is_beside: bool = False


def search_log(
    run: Run, text: str, level: str, before: Cursor | None = None, around: int = 0
) -> LogMatches:
    """Return the last lines that contain the text, in any case, and are of the level, with so many
    lines around each.

    Lines are searched as pages show them: a secret that is masked is not found. One request reads
    4 MB of the log at most, and a block beyond each end of this part for the lines around.
    Without text and level all lines match, and there is no line around.
    """
    rows = _rows(run)
    around = around if text or level else 0
    chosen = blocks_within(_earlier(rows, before) if before is not None else rows, _MOST_SEARCHED)
    matcher, count = _Matcher(text, level), 0
    searched: list[_SearchedBlock] = []
    last: Cursor | None = None
    for block in chosen.blocks:
        entry = matcher.search(block)
        if count and count + len(entry.matches) > _MOST_LINES:
            break
        count += len(entry.matches)
        searched.append(entry)
        last = (block.attempt.number, block.sequence)
    else:
        last = last if chosen.is_cut else None
    if around and searched:
        later = _at(rows, before) if before else []
        earlier = _earlier(rows, last)[:1] if last else []
        searched = [
            *(matcher.search(block, is_beside=True) for block in later),
            *searched,
            *(matcher.search(block, is_beside=True) for block in earlier),
        ]
    return LogMatches(_passages(searched[::-1], around), count, last)


def _rows(run: Run) -> QuerySet[RunLog]:
    rows = RunLog.objects.filter(attempt__run=run).select_related("attempt")
    return rows.order_by("-attempt__number", "-sequence")


def _earlier(rows: QuerySet[RunLog], before: Cursor) -> QuerySet[RunLog]:
    number, sequence = before
    return rows.filter(
        Q(attempt__number__lt=number) | Q(attempt__number=number, sequence__lt=sequence)
    )


def _at(rows: QuerySet[RunLog], place: Cursor) -> QuerySet[RunLog]:
    number, sequence = place
    return rows.filter(attempt__number=number, sequence=sequence)


class _Matcher:
    """Finds the lines with a text, in any case, of a level."""

    def __init__(self, text: str, level: str) -> None:
        _, level_words = LEVELS[level]
        self._of_level = re.compile(level_words, re.IGNORECASE) if level_words else None
        self._text = text.casefold()

    def search(self, block: RunLog, *, is_beside: bool = False) -> _SearchedBlock:
        """Return the lines of a block, and the places of the matching lines."""
        lines = masked_text(block.text).splitlines()
        matches = [index for index, line in enumerate(lines) if self._is_match(line)]
        return _SearchedBlock(block, lines, matches, is_beside)

    def _is_match(self, line: str) -> bool:
        is_of_level = self._of_level is None or self._of_level.search(line) is not None
        return is_of_level and self._text in line.casefold()


def _passages(searched: Sequence[_SearchedBlock], around: int) -> list[LogPassage]:
    """Return the lines near the matches of blocks in order: lines that follow each other in one
    attempt are one passage.
    """
    passages: list[LogPassage] = []
    attempts = {entry.block.attempt.number: entry.block.attempt for entry in searched}
    for number in sorted(attempts):
        lines: list[str] = []
        matches: list[int] = []
        marked: set[int] = set()
        for entry in searched:
            if entry.block.attempt.number == number:
                places = [len(lines) + index for index in entry.matches]
                marked.update(places)
                matches += () if entry.is_beside else places
                lines += entry.lines
        of_attempt = _ranges(matches, around, len(lines))
        passages += (
            LogPassage(
                attempts[number],
                [LogLine(lines[index], index in marked) for index in span],
                place == 0,
            )
            for place, span in enumerate(of_attempt)
        )
    return passages


def _ranges(matches: Sequence[int], around: int, line_count: int) -> list[range]:
    """Return the places of the lines around the matches, as ranges without overlap."""
    ranges: list[range] = []
    for index in matches:
        first, end = max(index - around, 0), min(index + around + 1, line_count)
        if ranges and first <= ranges[-1].stop:
            ranges[-1] = range(ranges[-1].start, end)
        else:
            ranges.append(range(first, end))
    return ranges
