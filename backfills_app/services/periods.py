"""The time that a request is about, on assets whose partitions differ.

Each asset that can read it reads it by its own keys. One that cannot (its windows are longer, it
begins later, it has none) gets its partitions that overlap those of the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from accounts_app.errors import InvalidRequest
from backfills_app.models import BackfillOrder
from backfills_app.services.choosing import Chosen, choose, ended_by, refuse_two_periods
from backfills_app.services.parts import Part
from backfills_app.services.requests import BackfillRequest
from partitions_app.rules import has_time

Terms = list[slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class Hull:
    """From the start of the first window to the end of the last one."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The partitions that a request names, by the assets that can read it; those of several are in
    one term each.
    """

    readings: Mapping[Part, Chosen]
    at: datetime

    @property
    def number(self) -> int:
        """The number of terms."""
        return len(next(iter(self.readings.values())).terms)

    @property
    def hull(self) -> Hull:
        """The whole of its time."""
        found = hull_of(chosen.whole for chosen in self.readings.values())
        assert found is not None  # noqa: S101  (only what has windows can be read)
        return found

    def of(self, part: Part) -> Chosen:
        """Return the partitions of an asset: as it reads them, or those that overlap the others."""
        known = self.readings.get(part)
        if known is not None:
            return known
        terms = self.overlapping(part)
        over = [ended_by(term, self.at) for term in terms]
        whole = part.nothing
        for term in over:
            whole |= term
        return Chosen(tuple(over), whole, sum(map(len, terms)) - sum(map(len, over)))

    def overlapping(self, part: Part) -> Terms:
        """Return the partitions of an asset that overlap those that were read, each once, also
        those that are not over.
        """
        terms: Terms = []
        seen = part.nothing
        for number in range(self.number):
            term = part.nothing
            for reader, chosen in self.readings.items():
                if chosen.terms[number]:
                    term |= slicewise.upstream_partitions(
                        reader.definition, part.definition, chosen.terms[number]
                    )
            terms.append(term - seen)
            seen |= term
        return terms


def hull_of(sets: Iterable[slicewise.PartitionSet]) -> Hull | None:
    """Return the time of several sets; None where none has windows."""
    hulls = [hull for each in sets if (hull := each.hull) is not None]
    if not hulls:
        return None
    return Hull(min(hull.start for hull in hulls), max(hull.end for hull in hulls))


def read_period(
    request: BackfillRequest, chosen: Sequence[Part], others: Sequence[Part], at: datetime
) -> Period:
    """Read the period of a request by the chosen assets that have time; where none has, by others.

    InvalidRequest on ``start``, ``end`` or ``selection`` where none can read it, and where no asset
    has time.
    """
    refuse_two_periods(request)
    readers = [part for part in chosen if has_time(part.definition)]
    readers = readers or [part for part in others if has_time(part.definition)]
    if not readers:
        raise _no_past(request)
    if request.order == BackfillOrder.LISTED and (len(chosen) > 1 or len(readers) > 1):
        raise InvalidRequest(
            {"order": "Several assets are not made as the selection lists them: oldest or newest."}
        )
    if len(readers) == 1:
        only = readers[0]
        return Period({only: _read(request, only, at, is_alone=True)}, at)
    readings: dict[Part, Chosen] = {}
    first_refusal: InvalidRequest | None = None
    for part in readers:
        try:
            readings[part] = _read(request, part, at, is_alone=False)
        except InvalidRequest as refused:
            first_refusal = first_refusal or refused
    if not readings:
        assert first_refusal is not None  # noqa: S101  (each was refused)
        raise first_refusal
    return Period(readings, at)


def _read(request: BackfillRequest, part: Part, at: datetime, *, is_alone: bool) -> Chosen:
    assert part.definition is not None  # noqa: S101  (what has time has a definition)
    return choose(request, part.definition, at, is_alone=is_alone)


def _no_past(request: BackfillRequest) -> InvalidRequest:
    if len(request.assets) == 1:
        said, them = f"{request.assets[0].name} has no partitions by time", "it"
    else:
        said, them = "None of these assets has partitions by time", "them"
    instead = f"materialize {them} instead, or ask for what is upstream as well"
    return InvalidRequest(
        {request.chosen_field: f"{said}, so there is no past to fill: {instead}."}
    )
