"""The selection grammar: one parser for pages, API and command line.

    selection  = part { ";" part }
    part       = union | { name "=" union }      each dimension that is not named: all of it
    union      = item { "," item }
    item       = "*" | text | text ".." text     both ends of a range are included

A time text is a key, or a year, quarter, month, week or date: all windows that start in it. A
segment text is a key, or a pattern with `*`. A union of a product lists whole keys, `2024-01-01|a`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from slicewise.errors import PartitionKeyError, SelectionError
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.selected_segments import read_segments
from slicewise.partitions.selected_windows import Numbers, TimeReader
from slicewise.partitions.selection_fragments import SelectionText
from slicewise.partitions.window_ranges import WindowRange
from slicewise.partitions.windows import Bound

LONGEST_SELECTION = 10_000
"""The most characters of a selection; reading a much longer selection would take seconds."""

_DIMENSION = re.compile(r"([A-Za-z_]\w*)\s*=")
Parse = Callable[[str], PartitionKey]
"""A function that returns the key of a key text. Raises PartitionKeyError."""


class Selection(NamedTuple):
    """The text of a selection, which is read with the keys of a definition."""

    text: SelectionText

    @classmethod
    def of(cls, text: str, longest: int | None) -> Self:
        """Return the selection of a text of at most `longest` characters. Raises SelectionError."""
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
            selection.refuse(
                "nothing is selected: write a key, a range 'first..last', or a pattern"
            )
        return cls(selection)

    def window_ranges(
        self, space: KeyIndex, parse: Parse, since: Bound, until: Bound
    ) -> list[WindowRange]:
        """Return the selected window ranges within [since, until). Raises SelectionError."""
        window_ranges: list[WindowRange] = []
        for term_text in self.text.split(";"):
            window_ranges += _read_term(space, parse, term_text, since, until)
        return window_ranges

    def keys_by_name(self, names: Sequence[str], parse: Parse) -> Iterator[PartitionKey]:
        """Yield the selected keys, for runtime partitions without a snapshot of keys.

        Raises SelectionError for a pattern or range, which would need the snapshot.
        """
        for term_text in self.text.split(";"):
            for fragment in (_read_names(names, term_text) or {"": term_text}).values():
                for item in fragment.split(","):
                    if "*" in item.text or ".." in item.text:
                        item.refuse(
                            f"the keys of {names[0]!r} are found at run time and not known"
                            " here: name each key"
                        )
                    yield parse(item.text)


def _read_term(
    space: KeyIndex,
    parse: Parse,
    term_text: SelectionText,
    since: Bound,
    until: Bound,
) -> Iterable[WindowRange]:
    named = _read_names(space.names, term_text)
    if named is None and term_text.text == "*":
        named = {}
    if named is None and len(space.names) > 1:
        return [_read_key(space, parse, key, since, until) for key in term_text.split(",")]
    fragments = {space.names[0]: term_text} if named is None else named
    numbers: list[Numbers] = [(0, 1)]
    if space.windows is not None and space.time_name is not None:
        times = TimeReader(space.windows, since, until)
        time_fragment = fragments.get(space.time_name)
        numbers = times.read(time_fragment) if time_fragment else [times.all(term_text)]
    segments = read_segments(space, fragments)
    return [WindowRange(first, stop, segments) for first, stop in numbers]


def _read_names(names: Sequence[str], term_text: SelectionText) -> dict[str, SelectionText] | None:
    """Return the text of each named dimension, or None if no dimension is named."""
    matches = list(_DIMENSION.finditer(term_text.text))
    if not matches:
        return None
    if term_text.between(0, matches[0].start()).text:
        term_text.refuse("begin with the name of a dimension, as in " + _example(names))
    named: dict[str, SelectionText] = {}
    ends = [match.start() for match in matches[1:]] + [len(term_text.text)]
    for match, end in zip(matches, ends, strict=True):
        name = term_text.between(match.start(), match.end())
        if match[1] not in names:
            name.refuse(f"no dimension {match[1]!r}: the dimensions are {', '.join(names)}")
        if match[1] in named:
            name.refuse(f"the dimension {match[1]!r} is named twice: use commas")
        named[match[1]] = term_text.between(match.end(), end)
        if not named[match[1]].text:
            name.refuse(f"the dimension {match[1]!r} names no key: write {match[1]}=*")
    return named


def _example(names: Sequence[str]) -> str:
    return " ".join(f"{name}=*" for name in names)


def _read_key(
    space: KeyIndex,
    parse: Parse,
    fragment: SelectionText,
    since: Bound,
    until: Bound,
) -> WindowRange:
    try:
        numbers = space.numbers(parse(fragment.text))
    except PartitionKeyError as error:
        fragment.refuse(f"{error}; name the dimensions, as in {_example(space.names)}")
    if space.windows is not None:
        TimeReader(space.windows, since, until).check_within(fragment, numbers[0])
    return WindowRange(numbers[0], numbers[0] + 1, frozenset({numbers[1]}))
