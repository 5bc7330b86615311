"""Sets of partitions read from the database: a span of adjacent windows is one row, however many
partitions the span has.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from django.db import connection

import slicewise
from assets_app.models import Asset
from partitions_app.rules import has_time, identity_of
from slicewise.keys import SEPARATOR
from slicewise.partitions import WindowRange

Definition = slicewise.PartitionDefinition | None
Sets = dict[str, slicewise.PartitionSet]

# Up to so many scattered partitions are looked up by key. Adjacent partitions are read faster as
# one range of time, even with some others between.
_MOST_KEYS, _FEWEST_BETWEEN = 20_000, 4

# Adjacent windows of one label and segment become one span. After the one sort, only the rows at
# the ends of spans are processed again.
_SPANS = """
WITH partition AS ({partitions}), edge AS (
    SELECT label, segment, window_start,
           (lag(window_end) OVER spot, lag(label) OVER spot)
               IS DISTINCT FROM (window_start, label) AS begins,
           (lead(window_start) OVER spot, lead(label) OVER spot)
               IS DISTINCT FROM (window_end, label) AS ends
    FROM partition WINDOW spot AS (PARTITION BY {span_columns} ORDER BY window_start)
), span AS (
    SELECT label, segment, begins, window_start AS first,
           CASE WHEN ends THEN window_start ELSE lead(window_start) OVER spot END AS last
    FROM edge WHERE begins OR ends
    WINDOW spot AS (PARTITION BY {span_columns} ORDER BY window_start)
)
SELECT label, extract(epoch FROM first)::bigint, extract(epoch FROM last)::bigint, {segments}
"""
# Equal spans of several segments become one row. Without segments no rows are combined.
_OF_SEGMENTS = "array_agg(segment) FROM span WHERE begins GROUP BY label, first, last"
_WITHOUT_SEGMENTS = "NULL FROM span WHERE begins"
_KEYS = "WITH partition AS ({partitions}) SELECT label, key FROM partition"

# Partitions of some assets within some time; callers add joins and conditions.
PARTITIONS = """
SELECT {label} AS label, partition.segment, partition.window_start, partition.window_end,
    partition.key
FROM assets_app_assetpartition AS partition {joins}
WHERE partition.asset_id = ANY(%(assets)s) AND partition.identity = %(identity)s
  AND (%(since)s::timestamptz IS NULL OR partition.window_start >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR partition.window_start < %(until)s)
  AND {condition}
"""


def spans(
    definition: Definition,
    assets: Sequence[Asset],
    within: slicewise.PartitionSet,
    *,
    label: str = "''",
    joins: str = "",
    condition: str = "true",
    **values: Any,
) -> Sets:
    """Return partitions within a set by a label, an SQL expression, for assets of one identity.

    Partitions that the definition no longer has are left out, and so are all partitions of assets
    with another identity.
    """
    if not within or not assets or identity_of(definition) != assets[0].identity:
        return {}
    parameters: dict[str, Any] = {
        "assets": [asset.pk for asset in assets],
        "identity": assets[0].identity,
        "since": None,
        "until": None,
    }
    if _is_read_by_key(within):
        condition = f"partition.key = ANY(%(keys)s::text[]) AND {condition}"
        parameters["keys"] = [key.text for key in within]
    elif hull := within.hull:
        parameters |= {"since": hull.start, "until": hull.end}
    query = PARTITIONS.format(label=label, joins=joins, condition=condition)
    sets = labeled(definition, query, {**parameters, **values}, is_once=len(assets) == 1)
    if _is_all_between(within):
        # The statement has read only partitions of this set.
        return sets
    return {name: partitions & within for name, partitions in sets.items()}


def most_rows(within: slicewise.PartitionSet) -> int:
    """Return a bound of the number of rows that ``spans`` reads for a set of one asset, if all
    partitions of the definition have rows: the number, or a larger one where windows are excluded.
    """
    is_counted = _is_all_between(within) or _is_read_by_key(within)
    return len(within) if is_counted else _most_between(within)


def _is_read_by_key(within: slicewise.PartitionSet) -> bool:
    """Return whether the partitions of a set are so few, or so scattered, that each is looked
    up.
    """
    if _is_all_between(within):
        return False
    number = len(within)
    if number > _MOST_KEYS:
        return False
    return within.space.windows is None or number * _FEWEST_BETWEEN < _most_between(within)


def _most_between(within: slicewise.PartitionSet) -> int:
    """Return a bound of the number of partitions from the first window of a set to the last window,
    of all segments. Excluded windows count: to find these takes up to seconds.
    """
    if not within:
        return 0
    ranges = within.window_ranges
    return (ranges[-1].stop - ranges[0].first) * within.space.segments.count


def _is_all_between(within: slicewise.PartitionSet) -> bool:
    """Return whether a set has all partitions between its first and its last one."""
    is_single_range = within.space.windows is not None and len(within.window_ranges) == 1
    return is_single_range and within.window_ranges[0].segments == within.space.segments.all


def labeled(
    definition: Definition, query: str, values: dict[str, Any], *, is_once: bool = False
) -> Sets:
    """Return the partitions that a query selects, by label; the query selects label, segment,
    start, end and key.

    ``is_once`` says that no partition is selected under several labels, which halves the cost.
    """
    by_window = has_time(definition)
    span_columns = "segment" if is_once else "label, segment"
    has_segments = definition is not None and bool(definition.space.segments.lists)
    segments = _OF_SEGMENTS if has_segments else _WITHOUT_SEGMENTS
    statement = (_SPANS if by_window else _KEYS).format(
        partitions=query, span_columns=span_columns, segments=segments
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    by_label: dict[str, list[Any]] = {}
    for label, *columns in rows:
        by_label.setdefault(label, []).append(columns)
    reader = _Reader(definition)
    return {
        label: reader.by_window(label_rows)
        if by_window
        else reader.by_key(key for (key,) in label_rows)
        for label, label_rows in by_label.items()
    }


class _Reader:
    """A reader of rows as partitions of one definition."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._segments: dict[str, int | None] = {}
        self._combinations: dict[tuple[str, ...], frozenset[int]] = {}

    def by_window(
        self, rows: Sequence[tuple[int, int, list[str] | None]]
    ) -> slicewise.PartitionSet:
        """Return the partitions of rows; a row has the first and the last second at which a window
        begins, and a list of segments.

        None instead of a list of segments stands for a definition without segments.
        """
        assert self._definition is not None  # noqa: S101  (windows belong to a definition)
        ticks = self._definition.space.time.ticks
        seconds = sorted({second for first, last, _ in rows for second in (first, last)})
        ranks = dict(zip(seconds, ticks.ranks(seconds), strict=True))
        window_ranges = (
            WindowRange(ranks[first], ranks[last] + 1, self._numbers(tuple(segments or [""])))
            for first, last, segments in rows
        )
        return slicewise.PartitionSet(self._definition, sorted(window_ranges, key=itemgetter(0, 1)))

    def by_key(self, texts: Iterable[str]) -> slicewise.PartitionSet:
        numbers = {number for text in texts if (number := self._number(text)) is not None}
        window_ranges = [WindowRange(0, 1, frozenset(numbers))] if numbers else []
        return slicewise.PartitionSet(self._definition, window_ranges)

    def _numbers(self, texts: tuple[str, ...]) -> frozenset[int]:
        numbers = self._combinations.get(texts)
        if numbers is None:
            found_numbers = (self._number(text) for text in texts)
            numbers = frozenset(number for number in found_numbers if number is not None)
            self._combinations[texts] = numbers
        return numbers

    def _number(self, text: str) -> int | None:
        """Return the number of a segment's text; None if the definition no longer has
        the segment.
        """
        if text not in self._segments:
            self._segments[text] = self._found(text)
        return self._segments[text]

    def _found(self, text: str) -> int | None:
        space = slicewise.PartitionSet(self._definition, ()).space
        lists = space.segments.lists
        texts = text.split(SEPARATOR) if lists else []
        if len(texts) != len(lists):
            return None
        component_numbers = [
            value_list.positions_by_text.get(component)
            for value_list, component in zip(lists, texts, strict=True)
        ]
        existing_numbers = [
            component_number
            for component_number in component_numbers
            if component_number is not None
        ]
        return (
            space.segments.number(existing_numbers)
            if len(existing_numbers) == len(component_numbers)
            else None
        )
