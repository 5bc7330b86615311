"""The period of a request, for assets whose partitions differ.

Each asset that can read the period reads it by its own keys. An asset that cannot (its windows are
longer, it begins later, it has none) gets the partitions that overlap the partitions of the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from backfills_app.models import BackfillOrder
from backfills_app.services.choosing import Chosen, choose, ended_by, refuse_two_periods
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.request.backfill_request import BackfillRequest
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import InvalidRequest

Terms = list[slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class Hull:
    """The time from the start of the first window to the end of the last one."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The partitions that a request names, by the assets that can read the period; with several
    assets each has one term.
    """

    readings: Mapping[AssetScope, Chosen]
    at: datetime

    @property
    def number(self) -> int:
        """The number of terms."""
        return len(next(iter(self.readings.values())).terms)

    @property
    def hull(self) -> Hull:
        """The time from the first to the last partition of all assets."""
        hull = hull_of(chosen.whole for chosen in self.readings.values())
        assert hull is not None  # noqa: S101  (only assets with windows read it)
        return hull

    def of(self, scope: AssetScope) -> Chosen:
        """Return the partitions of an asset: as the asset reads the period, or by overlap with
        other assets.
        """
        reading = self.readings.get(scope)
        if reading is not None:
            return reading
        overlapping_terms = self.overlapping(scope)
        ended_terms = [ended_by(term, self.at) for term in overlapping_terms]
        partitions = scope.nothing
        for term in ended_terms:
            partitions |= term
        return Chosen(
            tuple(ended_terms),
            partitions,
            sum(map(len, overlapping_terms)) - sum(map(len, ended_terms)),
        )

    def overlapping(self, scope: AssetScope) -> Terms:
        """Return the partitions of an asset that overlap the partitions read by other assets, each
        partition once, and also partitions that have not ended.
        """
        overlapping_terms: Terms = []
        earlier_partitions = scope.nothing
        for number in range(self.number):
            term = scope.nothing
            for reader, chosen in self.readings.items():
                if chosen.terms[number]:
                    term |= slicewise.upstream_partitions(
                        reader.definition, scope.definition, chosen.terms[number]
                    )
            overlapping_terms.append(term - earlier_partitions)
            earlier_partitions |= term
        return overlapping_terms


def hull_of(sets: Iterable[slicewise.PartitionSet]) -> Hull | None:
    """Return the time of several sets, from the first to the last window; None where none has
    windows.
    """
    hulls = [hull for partition_set in sets if (hull := partition_set.hull) is not None]
    if not hulls:
        return None
    return Hull(min(hull.start for hull in hulls), max(hull.end for hull in hulls))


def read_period(
    request: BackfillRequest,
    chosen: Sequence[AssetScope],
    other_scopes: Sequence[AssetScope],
    request_time: datetime,
) -> Period:
    """Read the period of a request by the chosen assets that have time; where none has, by other
    assets.

    Raises InvalidRequest on ``start``, ``end`` or ``selection`` if no asset can read the period,
    and if no asset has time.
    """
    refuse_two_periods(request)
    readers = [scope for scope in chosen if has_time(scope.definition)]
    readers = readers or [scope for scope in other_scopes if has_time(scope.definition)]
    if not readers:
        raise _no_past(request)
    if request.order == BackfillOrder.LISTED and (len(chosen) > 1 or len(readers) > 1):
        raise InvalidRequest(
            {"order": "Several assets are not made as the selection lists them: oldest or newest."}
        )
    if len(readers) == 1:
        reader = readers[0]
        return Period({reader: _read(request, reader, request_time, is_alone=True)}, request_time)
    readings: dict[AssetScope, Chosen] = {}
    first_refusal: InvalidRequest | None = None
    for scope in readers:
        try:
            readings[scope] = _read(request, scope, request_time, is_alone=False)
        except InvalidRequest as refused:
            first_refusal = first_refusal or refused
    if not readings:
        assert first_refusal is not None  # noqa: S101  (each was refused)
        raise first_refusal
    return Period(readings, request_time)


def _read(
    request: BackfillRequest, scope: AssetScope, request_time: datetime, *, is_alone: bool
) -> Chosen:
    assert scope.definition is not None  # noqa: S101  (an asset with time has a definition)
    return choose(request, scope.definition, request_time, is_alone=is_alone)


def _no_past(request: BackfillRequest) -> InvalidRequest:
    if len(request.assets) == 1:
        reason, pronoun = f"{request.assets[0].name} has no partitions by time", "it"
    else:
        reason, pronoun = "None of these assets has partitions by time", "them"
    instead = f"materialize {pronoun} instead, or ask for what is upstream as well"
    return InvalidRequest(
        {request.chosen_field: f"{reason}, so there is no past to fill: {instead}."}
    )
