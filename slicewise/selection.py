"""The selection grammar: one parser for pages, API and command line.

    selection  = part { ";" part }
    part       = union | { name "=" union }      every dimension that is not named: all of it
    union      = item { "," item }
    item       = "*" | text | text ".." text     both ends of a range are included

A time text is a key, or a year, quarter, month, week or date: all windows that start in it. A
segment text is a key, or a pattern with `*`. A union of a product lists whole keys, `2024-01-01|a`.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import product
from typing import NamedTuple, NoReturn

from slicewise.by_sequence import PartitionAtRuntime
from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError, SelectionError, UnboundedPartitionsError
from slicewise.keys import PartitionKey
from slicewise.moments import Span, read_time
from slicewise.partition_set import PartitionSet
from slicewise.plain_values import readable, written
from slicewise.segments import SegmentList
from slicewise.slabs import SegmentNumbers, Slab
from slicewise.snapshots import is_runtime, lists_keys
from slicewise.space import Space
from slicewise.windows import Bound, Windows

LONGEST_SELECTION = 10_000
"""Characters of a selection; reading many more terms would take seconds."""

_DIMENSION = re.compile(r"([A-Za-z_]\w*)\s*=")
Numbers = tuple[int, int]


class Piece(NamedTuple):
    """A piece of the selection that remembers where it stands."""

    text: str
    position: int
    whole: str

    def refuse(self, reason: str) -> NoReturn:
        """Raise a SelectionError that points here."""
        raise SelectionError(reason, self.whole, self.position)

    def strip(self) -> "Piece":
        """Without blanks around it."""
        blanks = len(self.text) - len(self.text.lstrip())
        return Piece(self.text.strip(), self.position + blanks, self.whole)

    def split(self, separator: str) -> Iterator["Piece"]:
        """Return the pieces between separators, without blanks; none may be empty."""
        position = self.position
        for text in self.text.split(separator):
            piece = Piece(text, position, self.whole).strip()
            if not piece.text:
                piece.refuse("something is missing here")
            yield piece
            position += len(text) + len(separator)

    def part(self, start: int, end: int) -> "Piece":
        """Return a part of it, without blanks."""
        return Piece(self.text[start:end], self.position + start, self.whole).strip()


def select(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> PartitionSet:
    """Return the partitions that a selection names. Raises SelectionError.

    `longest` is for texts that nobody typed: what a set says of itself may be longer.
    """
    definition, slabs = _read(definition, text, since, until, longest)
    return PartitionSet(definition, slabs)


def select_terms(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> tuple[PartitionSet, ...]:
    """Return the same partitions term by term, as they are listed; each without those of
    terms before.
    """
    definition, slabs = _read(definition, text, since, until, longest)
    seen, terms = PartitionSet(definition, ()), []
    for slab in slabs:
        term = PartitionSet(definition, [slab]) - seen
        if term:
            terms.append(term)
            seen |= term
    return tuple(terms)


def _read(
    definition: PartitionDefinition, text: str, since: Bound, until: Bound, longest: int | None
) -> tuple[PartitionDefinition, list[Slab]]:
    if not isinstance(text, str):
        raise SelectionError("a selection is a text", repr(text), 0)
    if longest is not None and len(text) > longest:
        raise SelectionError(
            f"a selection has at most {longest:,} characters, not {len(text):,}",
            f"{text[:50]}…",
            0,
        )
    whole = Piece(text, 0, text).strip()
    if not whole.text:
        whole.refuse("nothing is selected: write a key, a range 'first..last', or a pattern")
    if is_runtime(definition) and not lists_keys(definition):
        definition = definition.known(_keys_by_name(definition, whole))
    space = definition.space
    slabs: list[Slab] = []
    for part in whole.split(";"):
        slabs += _read_part(definition, space, part, since, until)
    return definition, slabs


def _read_part(
    definition: PartitionDefinition, space: Space, part: Piece, since: Bound, until: Bound
) -> Iterable[Slab]:
    named = _read_names(space, part)
    if named is None and len(space.names) > 1:
        return [_read_key(definition, space, key, since, until) for key in part.split(",")]
    pieces = {space.names[0]: part} if named is None else named
    numbers: list[Numbers] = [(0, 1)]
    if space.windows is not None and space.time_name is not None:
        times = _Times(space.windows, since, until)
        time_piece = pieces.get(space.time_name)
        numbers = times.read(time_piece) if time_piece else [times.all(part)]
    segments = _read_segments(space, pieces)
    return [Slab(first, stop, segments) for first, stop in numbers]


def _keys_by_name(definition: PartitionAtRuntime, whole: Piece) -> list[PartitionKey]:
    """The keys that a selection names, of a set of which nobody has said what is in it."""
    space, keys = definition.known(()).space, []
    for part in whole.split(";"):
        for piece in (_read_names(space, part) or {"": part}).values():
            for item in piece.split(","):
                if "*" in item.text or ".." in item.text:
                    item.refuse(
                        f"the keys of {definition.name!r} are found at run time and not known"
                        " here: name each"
                    )
                keys.append(definition.parse(item.text))
    return keys


def _read_names(space: Space, part: Piece) -> dict[str, Piece] | None:
    """The piece of each dimension that is named, None where none is."""
    found = list(_DIMENSION.finditer(part.text))
    if not found:
        return None
    if part.part(0, found[0].start()).text:
        part.refuse("begin with the name of a dimension, as in " + _example(space))
    named: dict[str, Piece] = {}
    ends = [match.start() for match in found[1:]] + [len(part.text)]
    for match, end in zip(found, ends, strict=True):
        name = part.part(match.start(), match.end())
        if match[1] not in space.names:
            name.refuse(f"no dimension {match[1]!r}: there are {', '.join(space.names)}")
        if match[1] in named:
            name.refuse(f"the dimension {match[1]!r} is named twice: use commas")
        named[match[1]] = part.part(match.end(), end)
        if not named[match[1]].text:
            name.refuse(f"the dimension {match[1]!r} selects nothing")
    return named


def _example(space: Space) -> str:
    return " ".join(f"{name}=*" for name in space.names)


def _read_key(
    definition: PartitionDefinition, space: Space, piece: Piece, since: Bound, until: Bound
) -> Slab:
    try:
        numbers = space.numbers(definition.parse(piece.text))
    except PartitionKeyError as error:
        piece.refuse(f"{error}; name the dimensions, as in {_example(space)}")
    if space.windows is not None:
        _Times(space.windows, since, until).check_within(piece, numbers[0])
    return Slab(numbers[0], numbers[0] + 1, frozenset({numbers[1]}))


# Windows on each side of an excluded one among which the nearest partition is looked for.
_FURTHEST = 400


class _Times:
    """Reads time texts as numbers of windows, within the definition's bounds and [since, until)."""

    def __init__(self, windows: Windows, since: Bound, until: Bound) -> None:
        self._windows, self._since, self._until = windows, since, until
        lows = [windows.lowest, None if since is None else windows.ticks.rank(since)]
        highs = [windows.highest, None if until is None else windows.last_before(until)]
        self._low = max((low for low in lows if low is not None), default=None)
        self._high = min((high for high in highs if high is not None), default=None)

    def all(self, piece: Piece) -> Numbers:
        """All windows, where both sides are bounded."""
        try:
            return self._windows.between(self._since, self._until)
        except UnboundedPartitionsError as error:
            piece.refuse(f"this takes in all of time: {error}")

    def read(self, piece: Piece) -> list[Numbers]:
        """The windows of a union."""
        return [self._read_item(item) for item in piece.split(",")]

    def _read_item(self, item: Piece) -> Numbers:
        if item.text == "*":
            return self.all(item)
        ends = list(item.split(".."))
        if len(ends) > 2:
            ends[2].refuse("a range has two ends")
        spans = [self._read_span(end) for end in ends]
        if spans[-1].end <= spans[0].start:
            ends[-1].refuse(f"{ends[-1].text} comes before {ends[0].text}")
        for end, span in zip(ends, spans, strict=True):
            self._check_span(end, span)
        first, stop = self._numbers(spans[0])[0], self._numbers(spans[-1])[1]
        first = first if self._low is None else max(first, self._low)
        stop = stop if self._high is None else min(stop, self._high)
        if not self._windows.count(first, stop):
            near = self._neighbours(first, stop)
            item.refuse(f"all partitions of {item.text} are excluded{near}")
        return first, stop

    def _read_span(self, piece: Piece) -> Span:
        try:
            return read_time(piece.text, self._windows.zone)
        except ValueError as error:
            piece.refuse(str(error))

    def _numbers(self, span: Span) -> Numbers:
        return self._windows.ticks.rank(span.start), self._windows.ticks.rank(span.end)

    def _check_span(self, piece: Piece, span: Span) -> None:
        first, stop = self._numbers(span)
        if first == stop:
            around = self._windows.window(self._windows.number_at(span.start))
            piece.refuse(f"no partition starts in {piece.text}; {around} contains it")
        self.check_within(piece, first, stop)

    def check_within(self, piece: Piece, first: int, stop: int | None = None) -> None:
        """Refuse a piece all of whose windows lie before the first or after the last one."""
        stop = first + 1 if stop is None else stop
        if self._low is not None and stop <= self._low:
            piece.refuse(f"{piece.text} is before the first partition, {self._text(self._low)}")
        if self._high is not None and first >= self._high:
            piece.refuse(f"{piece.text} is after the last partition, {self._text(self._high - 1)}")

    def _neighbours(self, first: int, stop: int) -> str:
        """Name the partitions next to a range of excluded windows, of those a little way off."""
        low, high = first - _FURTHEST, stop + _FURTHEST
        low = low if self._low is None else max(low, self._low)
        high = high if self._high is None else min(high, self._high)
        before = [end - 1 for _, end in self._windows.runs(low, first)][-1:]
        after = [start for start, _ in self._windows.runs(stop, high)][:1]
        names = [f"the last one before is {self._text(number)}" for number in before]
        names += [f"the first one after is {self._text(number)}" for number in after]
        return "".join(f"; {name}" for name in names)

    def _text(self, number: int) -> str:
        return self._windows.window(number).text


def _read_segments(space: Space, pieces: dict[str, Piece]) -> SegmentNumbers:
    places = [
        _read_places(each, pieces[name]) if name in pieces else list(range(len(each)))
        for name, each in zip(space.segment_names, space.segments.lists, strict=True)
    ]
    if all(
        len(set(found)) == len(each)
        for found, each in zip(places, space.segments.lists, strict=True)
    ):
        return space.segments.all
    return frozenset(space.segments.number(combination) for combination in product(*places))


def _read_places(segments: SegmentList, piece: Piece) -> list[int]:
    """Where the segments of a union stand in their list."""
    found: set[int] = set()
    for item in piece.split(","):
        ends = list(item.split(".."))
        if len(ends) == 1 and "*" in item.text:
            found.update(_read_pattern(segments, item))
            continue
        if len(ends) > 2:
            ends[2].refuse("a range has two ends")
        places = [_read_place(segments, end) for end in ends]
        if places[-1] < places[0]:
            ends[-1].refuse(f"{ends[-1].text} comes before {ends[0].text}")
        found.update(range(places[0], places[-1] + 1))
    return sorted(found)


def _read_pattern(segments: SegmentList, piece: Piece) -> list[int]:
    parts = written(piece.text).split("*")
    places = [place for place, text in enumerate(segments.texts) if _is_like(text, parts)]
    if not places:
        piece.refuse(f"no segment is like {piece.text}")
    return places


def _is_like(text: str, parts: list[str]) -> bool:
    """Whether the text consists of the parts in order, with anything between them.

    Each is taken where it is found first: a regular expression would try every other place too.
    """
    first, *inner, last = parts
    at, end = len(first), len(text) - len(last)
    if end < at or not text.startswith(first) or not text.endswith(last):
        return False
    for part in inner:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _read_place(segments: SegmentList, piece: Piece) -> int:
    place = segments.places.get(written(piece.text))
    if place is None:
        close = get_close_matches(piece.text, segments.texts, n=1)
        hint = f": did you mean {readable(close[0])}?" if close else ""
        piece.refuse(f"there is no segment {readable(piece.text)!r}{hint}")
    return place
