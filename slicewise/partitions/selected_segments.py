"""The segments that a selection names, by number."""

from difflib import get_close_matches
from itertools import product

from slicewise.keys.value_texts import key_text_of_readable, readable
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.segments import SegmentList
from slicewise.partitions.selection_fragments import SelectionText
from slicewise.partitions.window_ranges import SegmentNumbers


def read_segments(space: KeyIndex, fragments: dict[str, SelectionText]) -> SegmentNumbers:
    """Return the numbers of the segments; all segments of a dimension that has no fragment."""
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
            ends[2].refuse("a range has two ends: write first..last")
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
        fragment.refuse(f"no segment matches {fragment.text}")
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
    position = segments.positions_by_text.get(key_text_of_readable(fragment.text))
    if position is None:
        close = get_close_matches(fragment.text, segments.texts, n=1)
        hint = f": did you mean {readable(close[0])}?" if close else ""
        fragment.refuse(f"no segment {readable(fragment.text)!r}{hint}")
    return position
