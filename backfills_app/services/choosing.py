"""The partitions that a request names, as one asset reads the request by its own keys: partitions
that have ended.
"""

from dataclasses import dataclass
from datetime import datetime

import slicewise
from backfills_app.models import BackfillOrder
from backfills_app.services.errors import gather, refuse_above
from backfills_app.services.request.backfill_request import BackfillRequest
from slicewise.calendar import to_instant
from slicewise.errors import UnboundedPartitionsError
from slicewise.partitions import WindowRange, select_ranges
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Chosen:
    """Partitions of one asset, by selection term: a single term, unless the order is "listed".

    ``not_over`` counts partitions left out because their windows have not ended.
    """

    terms: tuple[slicewise.PartitionSet, ...]
    whole: slicewise.PartitionSet
    not_over: int = 0


def choose(
    request: BackfillRequest,
    definition: slicewise.PartitionDefinition,
    now: datetime,
    *,
    is_alone: bool = True,
) -> Chosen:
    """Return the partitions of a definition with time that a request names.

    Raises InvalidRequest on ``start``, ``end`` or ``selection``. Of an asset that ``is_alone`` the
    last partition must have ended where the request names the last partition; of other assets,
    partitions that have not ended are left out.
    """
    if request.selection:
        selection_terms = _selected(request.selection, definition)
    else:
        selection_terms = (_between(request, definition, until=now if is_alone else None),)
        if is_alone:
            return Chosen(selection_terms, selection_terms[0])
    ended_terms = [ended_term for term in selection_terms if (ended_term := ended_by(term, now))]
    if not ended_terms:
        raise _none_ended(request.period_field, selection_terms, now)
    partitions = ended_terms[0]
    for term in ended_terms[1:]:
        partitions |= term
    left_out = sum(map(len, selection_terms)) - len(partitions)
    listed = request.order == BackfillOrder.LISTED
    return Chosen(tuple(ended_terms) if listed else (partitions,), partitions, left_out)


def refuse_two_periods(request: BackfillRequest) -> None:
    """Refuse a selection beside a first and a last partition."""
    if request.selection and (request.start or request.end):
        raise InvalidRequest(
            {"selection": "Either a selection, or the first and the last partition, not both."}
        )


def refuse_too_many(number: int, field: str) -> None:
    """Refuse more partitions than one backfill may have, over all of its assets."""
    refuse_above("MAX_PARTITIONS_PER_BACKFILL", number, "partitions", field)


def ended_by(chosen: slicewise.PartitionSet, now: datetime) -> slicewise.PartitionSet:
    """Return the partitions whose windows have ended; all partitions of a definition without
    windows.
    """
    windows = chosen.space.windows
    if windows is None or not chosen:
        return chosen
    stop = windows.last_before(to_instant(now))
    slabs = (WindowRange(slab.first, min(slab.stop, stop), slab.segments) for slab in chosen.slabs)
    return slicewise.PartitionSet(chosen.definition, slabs)


def _selected(
    text: str, definition: slicewise.PartitionDefinition
) -> tuple[slicewise.PartitionSet, ...]:
    try:
        return select_ranges(definition, text)
    except ValueError as error:
        if isinstance(error.__context__, UnboundedPartitionsError):
            raise InvalidRequest(
                {
                    "selection": f"{text} names all of time: say a period, for example 2013-01 or"
                    " 2013-01-01..2013-01-31."
                }
            ) from error
        raise InvalidRequest({"selection": str(error)}) from error


def _none_ended(
    field: str, selection_terms: tuple[slicewise.PartitionSet, ...], now: datetime
) -> InvalidRequest:
    hulls = [term.hull for term in selection_terms if term.hull]
    if not hulls:
        return InvalidRequest({field: "It names no partition."})
    first = min(hulls, key=lambda hull: hull.start)
    return InvalidRequest(
        {
            field: "Nothing of it is over yet: it begins at"
            f" {first.start:%Y-%m-%d %H:%M} UTC. Only the past can be backfilled."
        }
    )


def _between(
    request: BackfillRequest, definition: slicewise.PartitionDefinition, *, until: datetime | None
) -> slicewise.PartitionSet:
    """Return the partitions from the first to the last, with all segments; where ``until`` is
    given, the last partition must have ended by then.
    """
    time = definition.time_dimension
    assert time is not None  # noqa: S101  (checked by the caller)
    errors: dict[str, list[str]] = {}
    first = gather(errors, lambda: _window_named(time, "start", request.start, first=True))
    last = gather(errors, lambda: _window_named(time, "end", request.end, first=False))
    if errors or first is None or last is None:
        raise InvalidRequest(errors)
    if first.start > last.start:
        raise InvalidRequest({"end": f"The last partition, {last}, is before the first, {first}."})
    if until is not None and last.end > until:
        raise InvalidRequest(
            {
                "end": f"{last} is not over yet: it ends at {last.end:%Y-%m-%d %H:%M} UTC."
                " Only the past can be backfilled."
            }
        )
    axis = next(
        dimension.name for dimension in definition.dimensions if dimension.definition is time
    )
    chosen: slicewise.PartitionSet = definition.select(f"{axis}={first}..{last}")
    return chosen


def _window_named(
    time: slicewise.PartitionByTime, field: str, text: str, *, first: bool
) -> slicewise.Interval:
    """Return the first or the last window that the text names: the text is a key, or a month or a
    year.
    """
    if not text:
        raise InvalidRequest({field: "Name a partition, for example a date."})
    try:
        windows = time.select(text)
    except ValueError as error:
        raise InvalidRequest({field: str(error)}) from error
    if not len(windows):
        raise InvalidRequest({field: f"There is no partition {text}."})
    window: slicewise.Interval = windows[0 if first else -1]
    return window
