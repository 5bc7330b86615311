"""The partitions that a request asks for: of the asset it names, those that are over."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

import slicewise
from accounts_app.errors import InvalidRequest
from backfills_app.models import BackfillOrder
from backfills_app.services.requests import BackfillRequest, gather
from slicewise.errors import UnboundedPartitionsError
from slicewise.selection import select_terms
from slicewise.slabs import Slab
from slicewise.zones import to_instant


@dataclass(frozen=True, slots=True)
class Chosen:
    """Partitions of one asset, in the terms in which they come: one, unless they are listed.

    ``not_over`` are left out, since their windows have not ended.
    """

    terms: tuple[slicewise.PartitionSet, ...]
    whole: slicewise.PartitionSet
    not_over: int = 0

    @property
    def text(self) -> str:
        """As a selection, which keeps the order of the terms."""
        return "; ".join(term.text for term in self.terms)


def choose(
    request: BackfillRequest, definition: slicewise.PartitionDefinition | None, now: datetime
) -> Chosen:
    """What the request names. InvalidRequest on ``asset``, ``start``, ``end`` or ``selection``."""
    if definition is None or definition.time_dimension is None:
        raise InvalidRequest(
            {
                "asset": f"{request.asset.name} has no partitions by time, so there is no past to"
                " fill: materialize it instead."
            }
        )
    if request.selection and (request.start or request.end):
        raise InvalidRequest(
            {"selection": "Either a selection, or the first and the last partition, not both."}
        )
    if not request.selection:
        whole = _between(request, definition, now)
        return Chosen((whole,), whole)
    terms = _selected(request.selection, definition)
    over = [each for term in terms if (each := ended_by(term, now))]
    if not over:
        raise _nothing_over(terms, now)
    whole = over[0]
    for term in over[1:]:
        whole |= term
    left_out = sum(map(len, terms)) - len(whole)
    listed = request.order == BackfillOrder.LISTED
    return Chosen(tuple(over) if listed else (whole,), whole, left_out)


def refuse_too_many(number: int, field: str) -> None:
    """Refuse more partitions than one backfill may have, over all of its assets."""
    most = settings.MAX_PARTITIONS_PER_BACKFILL
    if number > most:
        raise InvalidRequest(
            {
                field: f"{number:,} partitions are more than one backfill may have"
                f" ({most:,}, setting MAX_PARTITIONS_PER_BACKFILL)."
            }
        )


def ended_by(chosen: slicewise.PartitionSet, now: datetime) -> slicewise.PartitionSet:
    """Those of which the window has ended; all of what has none."""
    windows = chosen.space.windows
    if windows is None or not chosen:
        return chosen
    stop = windows.last_before(to_instant(now))
    slabs = (Slab(slab.first, min(slab.stop, stop), slab.segments) for slab in chosen.slabs)
    return slicewise.PartitionSet(chosen.definition, slabs)


def _selected(
    text: str, definition: slicewise.PartitionDefinition
) -> tuple[slicewise.PartitionSet, ...]:
    try:
        return select_terms(definition, text)
    except ValueError as error:
        if isinstance(error.__context__, UnboundedPartitionsError):
            raise InvalidRequest(
                {
                    "selection": f"{text} names all of time: say a period, for example 2013-01 or"
                    " 2013-01-01..2013-01-31."
                }
            ) from error
        raise InvalidRequest({"selection": str(error)}) from error


def _nothing_over(terms: tuple[slicewise.PartitionSet, ...], now: datetime) -> InvalidRequest:
    first = min((term.hull for term in terms if term.hull), key=lambda hull: hull.start)
    return InvalidRequest(
        {
            "selection": "Nothing of it is over yet: it begins at"
            f" {first.start:%Y-%m-%d %H:%M} UTC. Only the past can be backfilled."
        }
    )


def _between(
    request: BackfillRequest, definition: slicewise.PartitionDefinition, now: datetime
) -> slicewise.PartitionSet:
    """The partitions from the first to the last, with all segments."""
    time = definition.time_dimension
    assert time is not None  # noqa: S101  (checked by the caller)
    errors: dict[str, list[str]] = {}
    first = gather(errors, lambda: _window_named(time, "start", request.start, first=True))
    last = gather(errors, lambda: _window_named(time, "end", request.end, first=False))
    if errors or first is None or last is None:
        raise InvalidRequest(errors)
    if first.start > last.start:
        raise InvalidRequest({"end": f"The last partition, {last}, is before the first, {first}."})
    if last.end > now:
        raise InvalidRequest(
            {
                "end": f"{last} is not over yet: it ends at {last.end:%Y-%m-%d %H:%M} UTC."
                " Only the past can be backfilled."
            }
        )
    axis = next(each.name for each in definition.dimensions if each.definition is time)
    chosen: slicewise.PartitionSet = definition.select(f"{axis}={first}..{last}")
    return chosen


def _window_named(
    time: slicewise.PartitionByTime, field: str, text: str, *, first: bool
) -> slicewise.Interval:
    """The first or the last window of what the text names: a key, or a month or a year of them."""
    if not text:
        raise InvalidRequest({field: "Name a partition, for example a date."})
    try:
        named = time.select(text)
    except ValueError as error:
        raise InvalidRequest({field: str(error)}) from error
    if not len(named):
        raise InvalidRequest({field: f"There is no partition {text}."})
    window: slicewise.Interval = named[0 if first else -1]
    return window
