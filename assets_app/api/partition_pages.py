"""Pages of an asset's partitions: keys come from the definition, states from rows.

Each page reads a bounded number of keys. So a page may hold fewer results than requested, even
none, while more pages follow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.db.models import Q, QuerySet

from assets_app.api.partition_lines import PartitionLine, line_of_row, lines_of, rows_of
from assets_app.models import Asset, AssetPartition, PartitionState
from assets_app.queries.grid_selection import stale_texts
from assets_app.queries.keys import still_known
from assets_app.queries.late_inputs import late_inputs_of
from assets_app.queries.lookups import not_partitioned_sentence
from assets_app.queries.overdue import late_marks, overdue_partitions
from assets_app.queries.reasons import reasons_of
from assets_app.queries.staleness import stale_among
from partitions_app.state_badges import NOT_BEGUN_STATES
from slicewise import PartitionSet, UnboundedPartitionsError
from slicewise.keys import WHOLE
from slicewise_server.web.request_errors import InvalidRequest

CHUNK = 1000
# Partitions that are not there in time, whatever the last run did.
OVERDUE = "overdue"
# Materialized partitions with a newer input.
STALE = "stale"
CHUNKS_PER_PAGE = 20
STATES = (
    *("missing", "queued", "running", "materialized", "failed", "canceled", "skipped"),
    *(OVERDUE, STALE),
)
Position = int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionQuery:
    """The request for a page of an asset's partitions, by default partitions ended by ``now``."""

    asset: Asset
    now: datetime
    selection: str = ""
    state: str = ""
    position: Any = None
    size: int = 100


def partition_page(query: PartitionQuery) -> tuple[list[PartitionLine], Position]:
    """Return the lines of one page in window order, and the position of the next page.

    Raise InvalidRequest on ``selection``, ``state`` or ``cursor``.
    """
    if query.state and query.state not in STATES:
        raise InvalidRequest(
            {"state": f"{query.state!r} is no state; there are {', '.join(STATES)}."}
        )
    if query.position is not None and (type(query.position) is not int or query.position < 0):
        raise _bad_cursor()
    lines, position = _READERS.get(query.state, _by_row)(query)
    keys = [line.key for line in lines if line.version]
    stale, late_inputs = stale_among(query.asset, keys), late_inputs_of(query.asset, keys)
    marks = late_marks(query.asset, [line.key for line in lines if not line.version], query.now)
    reasons = reasons_of(query.asset, [line.key for line in lines], query.now)
    explained_lines = [
        replace(
            line,
            stale=line.key in stale,
            reason=reasons[line.key].text if line.key in reasons else "",
            lateness=marks[line.key].word if line.key in marks else "",
            overdue_at=marks[line.key].overdue_at if line.key in marks else None,
            late_inputs=late_inputs.get(line.key, ()),
        )
        for line in lines
    ]
    return explained_lines, position


def chosen_keys(query: PartitionQuery) -> Sequence[Any] | PartitionSet:
    """Return the keys that the query selects, not yet listed."""
    definition = query.asset.definition
    if not query.selection.strip():
        return _keys_so_far(query)
    if definition is None:
        raise InvalidRequest({"selection": not_partitioned_sentence(query.asset)})
    try:
        chosen: PartitionSet = definition.select(query.selection, until=query.now)
    except ValueError as error:
        raise InvalidRequest({"selection": str(error)}) from error
    return chosen


def _keys_so_far(query: PartitionQuery) -> Sequence[Any]:
    definition = query.asset.definition
    if definition is None:
        return [WHOLE]
    try:
        keys: Sequence[Any] = definition.keys(until=query.now)
    except UnboundedPartitionsError:
        # Without a start the first partition is the first with a row.
        first = (
            rows_of(query.asset).filter(window_start__isnull=False).order_by("window_start").first()
        )
        if first is None:
            return []
        keys = definition.keys(since=first.window_start, until=query.now)
    return keys


def _by_key(query: PartitionQuery) -> tuple[list[PartitionLine], Position]:
    keys, index = chosen_keys(query), query.position or 0
    lines: list[PartitionLine] = []
    size = query.size if not query.state else CHUNK
    for _ in range(CHUNKS_PER_PAGE if query.state else 1):
        for line in lines_of(query.asset, _key_page(keys, index, size)):
            index += 1
            if not query.state or line.state == query.state:
                lines.append(line)
            if len(lines) == query.size:
                break
        if index >= len(keys) or len(lines) == query.size:
            break
    return lines, index if index < len(keys) else None


def _key_page(keys: Sequence[Any] | PartitionSet, start: int, size: int) -> Sequence[Any]:
    """Return up to ``size`` keys from index ``start`` on, without listing the keys before."""
    if not isinstance(keys, PartitionSet):
        return keys[start : start + size]
    page_keys: list[Any] = []
    for window_range in keys.window_ranges:
        segments, windows = sorted(window_range.segments), keys.windows(window_range)
        count = len(windows) * len(segments)
        if start < count:
            open_count = size - len(page_keys)
            first, skip = divmod(start, len(segments))
            until = -(-(start + open_count) // len(segments))
            range_keys = chain.from_iterable(
                keys.space.keys(window, segments) for window in windows[first:until]
            )
            page_keys += islice(range_keys, skip, skip + open_count)
            if len(page_keys) == size:
                break
        start = max(0, start - count)
    return page_keys


def _by_row(query: PartitionQuery) -> tuple[list[PartitionLine], Position]:
    chosen = chosen_keys(query) if query.selection.strip() else None
    lines: list[PartitionLine] = []
    last: AssetPartition | None = _row_at(query)
    for _ in range(CHUNKS_PER_PAGE):
        rows = list(_after(last, _in_state(rows_of(query.asset), query.state))[:CHUNK])
        for last in rows:
            if _is_chosen(query.asset, last, chosen):
                lines.append(line_of_row(query.asset, last))
            if len(lines) == query.size:
                return lines, last.pk
        if len(rows) < CHUNK:
            return lines, None
    return lines, last.pk if last else None


def _row_at(query: PartitionQuery) -> AssetPartition | None:
    if query.position is None:
        return None
    row = AssetPartition.objects.filter(asset=query.asset, pk=query.position).first()
    if row is None:
        raise _bad_cursor()
    return row


def _is_chosen(
    asset: Asset, row: AssetPartition, chosen: Sequence[Any] | PartitionSet | None
) -> bool:
    definition = asset.definition
    if definition is None:
        return chosen is None
    try:
        key = definition.parse(row.key)
    except ValueError:
        # Materialized under earlier bounds of the definition: an orphan, which is listed elsewhere.
        return False
    return chosen is None or key in chosen


def _in_state(rows: QuerySet[AssetPartition], state: str) -> QuerySet[AssetPartition]:
    if state == "queued":
        return rows.filter(held_by__state__in=NOT_BEGUN_STATES)
    if state == "running":
        return rows.filter(held_by__isnull=False).exclude(held_by__state__in=NOT_BEGUN_STATES)
    return rows.filter(held_by__isnull=True, state=PartitionState(state))


def _after(row: AssetPartition | None, rows: QuerySet[AssetPartition]) -> QuerySet[AssetPartition]:
    if row is not None:
        later = Q(segment__gt=row.segment) | Q(segment=row.segment, pk__gt=row.pk)
        if row.window_start is not None:
            later = Q(window_start=row.window_start) & later
            later |= Q(window_start__gt=row.window_start)
        rows = rows.filter(later)
    return rows.order_by("window_start", "segment", "pk")


def _bad_cursor() -> InvalidRequest:
    # The command `partitions` has no cursors, and the module of cursors takes long to import.
    from slicewise_server.web.api.pages import bad_cursor

    return bad_cursor()


def _overdue(query: PartitionQuery) -> tuple[list[PartitionLine], Position]:
    rows = overdue_partitions(query.asset, query.now)
    return _by_texts(query, rows.values_list("key", flat=True))


def _stale(query: PartitionQuery) -> tuple[list[PartitionLine], Position]:
    return _by_texts(query, stale_texts(query.asset, None))


def _by_texts(query: PartitionQuery, texts: Iterable[str]) -> tuple[list[PartitionLine], Position]:
    """Return a page of the partitions of these texts; the position is the number of partitions
    before.
    """
    definition = query.asset.definition
    chosen = chosen_keys(query) if query.selection.strip() else None
    known_keys = still_known(definition, texts) if definition else [WHOLE for _ in texts]
    keys = [key for key in known_keys if chosen is None or key in chosen]
    first = query.position or 0
    page_keys = keys[first : first + query.size]
    following = first + len(page_keys)
    lines = list(lines_of(query.asset, page_keys))
    return lines, following if following < len(keys) else None


_READERS = {"": _by_key, PartitionState.MISSING: _by_key, OVERDUE: _overdue, STALE: _stale}
