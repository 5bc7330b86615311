"""The selection grammar: one parser for pages, API and command line.

    selection  = part { ";" part }
    part       = union | { name "=" union }      each dimension that is not named: all of it
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

from slicewise.calendar.time_text import Span, read_time
from slicewise.errors import PartitionKeyError, SelectionError, UnboundedPartitionsError
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.value_texts import key_text_of_readable, readable
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.partition_set import PartitionSet
from slicewise.partitions.runtime_keys import is_runtime, lists_keys
from slicewise.partitions.segments import SegmentList
from slicewise.partitions.window_ranges import SegmentNumbers, WindowRange
from slicewise.partitions.windows import Bound, Windows

LONGEST_SELECTION = 10_000
"""The most characters of a selection; reading a much longer selection would take seconds."""

_DIMENSION = re.compile(r"([A-Za-z_]\w*)\s*=")
Numbers = tuple[int, int]


class SelectionText(NamedTuple):
    """A text inside the selection, with its position in the whole selection."""

    text: str
    position: int
    whole: str

    def refuse(self, reason: str) -> NoReturn:
        """Raise a SelectionError that points at this text."""
        raise SelectionError(reason, self.whole, self.position)

    def strip(self) -> "SelectionText":
        """Return the text without surrounding blanks."""
        blanks = len(self.text) - len(self.text.lstrip())
        return SelectionText(self.text.strip(), self.position + blanks, self.whole)

    def split(self, separator: str) -> Iterator["SelectionText"]:
        """Return the texts between separators, without blanks; an empty text is an error."""
        position = self.position
        for text in self.text.split(separator):
            fragment = SelectionText(text, position, self.whole).strip()
            if not fragment.text:
                fragment.refuse("something is missing here")
            yield fragment
            position += len(text) + len(separator)

    def part(self, start: int, end: int) -> "SelectionText":
        """Return the text from start to end, without surrounding blanks."""
        return SelectionText(self.text[start:end], self.position + start, self.whole).strip()


def select(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> PartitionSet:
    """Return the partitions that a selection names. Raises SelectionError.

    `longest` is for generated texts: the text of a set may be longer than a typed selection.
    """
    definition, slabs = _read(definition, text, since, until, longest)
    return PartitionSet(definition, slabs)


def select_ranges(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> tuple[PartitionSet, ...]:
    """Return one set per selected range, in the written order, without keys of earlier sets."""
    definition, slabs = _read(definition, text, since, until, longest)
    selected, range_sets = PartitionSet(definition, ()), []
    for slab in slabs:
        range_set = PartitionSet(definition, [slab]) - selected
        if range_set:
            range_sets.append(range_set)
            selected |= range_set
    return tuple(range_sets)


def _read(
    definition: PartitionDefinition, text: str, since: Bound, until: Bound, longest: int | None
) -> tuple[PartitionDefinition, list[WindowRange]]:
    if not isinstance(text, str):
        raise SelectionError("a selection is a text", repr(text), 0)
    if longest is not None and len(text) > longest:
        raise SelectionError(
            f"a selection has at most {longest:,} characters, not {len(text):,}",
            f"{text[:50]}…",
            0,
        )
    selection = SelectionText(text, 0, text).strip()
    if not selection.text:
        selection.refuse("nothing is selected: write a key, a range 'first..last', or a pattern")
    if is_runtime(definition) and not lists_keys(definition):
        definition = definition.known(_keys_by_name(definition, selection))
    space = definition.space
    slabs: list[WindowRange] = []
    for part_text in selection.split(";"):
        slabs += _read_part(definition, space, part_text, since, until)
    return definition, slabs


def _read_part(
    definition: PartitionDefinition,
    space: KeyIndex,
    part_text: SelectionText,
    since: Bound,
    until: Bound,
) -> Iterable[WindowRange]:
    named = _read_names(space, part_text)
    if named is None and len(space.names) > 1:
        return [_read_key(definition, space, key, since, until) for key in part_text.split(",")]
    fragments = {space.names[0]: part_text} if named is None else named
    numbers: list[Numbers] = [(0, 1)]
    if space.windows is not None and space.time_name is not None:
        times = _Times(space.windows, since, until)
        time_fragment = fragments.get(space.time_name)
        numbers = times.read(time_fragment) if time_fragment else [times.all(part_text)]
    segments = _read_segments(space, fragments)
    return [WindowRange(first, stop, segments) for first, stop in numbers]


def _keys_by_name(definition: PartitionAtRuntime, selection: SelectionText) -> list[PartitionKey]:
    """Return the keys that a selection names, for runtime partitions without a snapshot of keys."""
    space, keys = definition.known(()).space, []
    for part_text in selection.split(";"):
        for fragment in (_read_names(space, part_text) or {"": part_text}).values():
            for item in fragment.split(","):
                if "*" in item.text or ".." in item.text:
                    item.refuse(
                        f"the keys of {definition.name!r} are found at run time and not known"
                        " here: name each"
                    )
                keys.append(definition.parse(item.text))
    return keys


def _read_names(space: KeyIndex, part_text: SelectionText) -> dict[str, SelectionText] | None:
    """Return the text of each named dimension, or None if no dimension is named."""
    matches = list(_DIMENSION.finditer(part_text.text))
    if not matches:
        return None
    if part_text.part(0, matches[0].start()).text:
        part_text.refuse("begin with the name of a dimension, as in " + _example(space))
    named: dict[str, SelectionText] = {}
    ends = [match.start() for match in matches[1:]] + [len(part_text.text)]
    for match, end in zip(matches, ends, strict=True):
        name = part_text.part(match.start(), match.end())
        if match[1] not in space.names:
            name.refuse(f"no dimension {match[1]!r}: there are {', '.join(space.names)}")
        if match[1] in named:
            name.refuse(f"the dimension {match[1]!r} is named twice: use commas")
        named[match[1]] = part_text.part(match.end(), end)
        if not named[match[1]].text:
            name.refuse(f"the dimension {match[1]!r} selects nothing")
    return named


def _example(space: KeyIndex) -> str:
    return " ".join(f"{name}=*" for name in space.names)


def _read_key(
    definition: PartitionDefinition,
    space: KeyIndex,
    fragment: SelectionText,
    since: Bound,
    until: Bound,
) -> WindowRange:
    try:
        numbers = space.numbers(definition.parse(fragment.text))
    except PartitionKeyError as error:
        fragment.refuse(f"{error}; name the dimensions, as in {_example(space)}")
    if space.windows is not None:
        _Times(space.windows, since, until).check_within(fragment, numbers[0])
    return WindowRange(numbers[0], numbers[0] + 1, frozenset({numbers[1]}))


# The number of windows before and after an excluded window that are searched for a partition.
_FURTHEST = 400


class _Times:
    """A reader of time texts as window numbers, within the definition's and the given bounds."""

    def __init__(self, windows: Windows, since: Bound, until: Bound) -> None:
        self._windows, self._since, self._until = windows, since, until
        lows = [windows.lowest, None if since is None else windows.ticks.rank(since)]
        highs = [windows.highest, None if until is None else windows.last_before(until)]
        self._low = max((low for low in lows if low is not None), default=None)
        self._high = min((high for high in highs if high is not None), default=None)

    def all(self, fragment: SelectionText) -> Numbers:
        """Return the range of all windows; both sides must be bounded."""
        try:
            return self._windows.between(self._since, self._until)
        except UnboundedPartitionsError as error:
            fragment.refuse(f"this takes in all of time: {error}")

    def read(self, fragment: SelectionText) -> list[Numbers]:
        """Return the ranges of windows of a union."""
        return [self._read_item(item) for item in fragment.split(",")]

    def _read_item(self, item: SelectionText) -> Numbers:
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

    def _read_span(self, fragment: SelectionText) -> Span:
        try:
            return read_time(fragment.text, self._windows.zone)
        except ValueError as error:
            fragment.refuse(str(error))

    def _numbers(self, span: Span) -> Numbers:
        return self._windows.ticks.rank(span.start), self._windows.ticks.rank(span.end)

    def _check_span(self, fragment: SelectionText, span: Span) -> None:
        first, stop = self._numbers(span)
        if first == stop:
            around = self._windows.window(self._windows.number_at(span.start))
            fragment.refuse(f"no partition starts in {fragment.text}; {around} contains it")
        self.check_within(fragment, first, stop)

    def check_within(self, fragment: SelectionText, first: int, stop: int | None = None) -> None:
        """Refuse a text whose windows are all before the first or all after the last window."""
        stop = first + 1 if stop is None else stop
        if self._low is not None and stop <= self._low:
            fragment.refuse(
                f"{fragment.text} is before the first partition, {self._text(self._low)}"
            )
        if self._high is not None and first >= self._high:
            fragment.refuse(
                f"{fragment.text} is after the last partition, {self._text(self._high - 1)}"
            )

    def _neighbours(self, first: int, stop: int) -> str:
        """Return a hint with the partitions next to a range of excluded windows, if near enough."""
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


def _read_segments(space: KeyIndex, fragments: dict[str, SelectionText]) -> SegmentNumbers:
    positions = [
        _read_positions(sequence, fragments[name])
        if name in fragments
        else list(range(len(sequence)))
        for name, sequence in zip(space.segment_names, space.segments.lists, strict=True)
    ]
    if all(
        len(set(sequence_positions)) == len(sequence)
        for sequence_positions, sequence in zip(positions, space.segments.lists, strict=True)
    ):
        return space.segments.all
    return frozenset(space.segments.number(combination) for combination in product(*positions))


def _read_positions(segments: SegmentList, fragment: SelectionText) -> list[int]:
    """Return the positions of a union's segments in the list."""
    positions: set[int] = set()
    for item in fragment.split(","):
        ends = list(item.split(".."))
        if len(ends) == 1 and "*" in item.text:
            positions.update(_read_pattern(segments, item))
            continue
        if len(ends) > 2:
            ends[2].refuse("a range has two ends")
        ends_positions = [_read_position(segments, end) for end in ends]
        if ends_positions[-1] < ends_positions[0]:
            ends[-1].refuse(f"{ends[-1].text} comes before {ends[0].text}")
        positions.update(range(ends_positions[0], ends_positions[-1] + 1))
    return sorted(positions)


def _read_pattern(segments: SegmentList, fragment: SelectionText) -> list[int]:
    literals = key_text_of_readable(fragment.text).split("*")
    positions = [
        position for position, text in enumerate(segments.texts) if _is_like(text, literals)
    ]
    if not positions:
        fragment.refuse(f"no segment is like {fragment.text}")
    return positions


def _is_like(text: str, literals: list[str]) -> bool:
    """Return whether the text consists of the literals in order, with any texts between them.

    Each literal is matched at its first occurrence: a regular expression would try all others, too.
    """
    first, *inner, last = literals
    position, end = len(first), len(text) - len(last)
    if end < position or not text.startswith(first) or not text.endswith(last):
        return False
    for literal in inner:
        position = text.find(literal, position, end)
        if position < 0:
            return False
        position += len(literal)
    return True


def _read_position(segments: SegmentList, fragment: SelectionText) -> int:
    position = segments.places.get(key_text_of_readable(fragment.text))
    if position is None:
        close = get_close_matches(fragment.text, segments.texts, n=1)
        hint = f": did you mean {readable(close[0])}?" if close else ""
        fragment.refuse(f"there is no segment {readable(fragment.text)!r}{hint}")
    return position
