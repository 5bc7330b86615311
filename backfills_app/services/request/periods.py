"""The period of a request, for assets whose partitions differ.

Each asset that can read the period reads it by its own keys. An asset that cannot (its windows are
longer, it begins later, it has none) gets the partitions that overlap the partitions of the others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import slicewise
from backfills_app.models import AssetRole, BackfillOrder
from backfills_app.services.partitions.frozen_assets import FrozenAsset, refuse_too_many_partitions
from backfills_app.services.partitions.scopes import (
    ScopeDraft,
    partition_count,
)
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.frozen_request import FrozenRequest
from partitions_app.rules import has_time
from slicewise.calendar import to_instant
from slicewise.errors import UnboundedPartitionsError
from slicewise.partitions import TimeDefinition, ended_by, select_ranges
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest

Terms = list[slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Partitions of one asset, by selection term: a single term, unless the order is "listed".

    ``not_ended`` counts partitions left out because their windows have not ended.
    """

    terms: tuple[slicewise.PartitionSet, ...]
    whole: slicewise.PartitionSet
    not_ended: int = 0


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

    readings: Mapping[FrozenAsset, Chosen]
    at: datetime
    # The name of the field of the request that names the partitions.
    field: str

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

    def of(self, asset: FrozenAsset) -> Chosen:
        """Return the partitions of an asset: as the asset reads the period, or by overlap with
        other assets.
        """
        reading = self.readings.get(asset)
        if reading is not None:
            return reading
        overlapping_terms = self.overlapping(asset)
        ended_terms = [ended_by(term, self.at) for term in overlapping_terms]
        partitions = asset.nothing
        for term in ended_terms:
            partitions |= term
        return Chosen(
            tuple(ended_terms),
            partitions,
            sum(map(len, overlapping_terms)) - sum(map(len, ended_terms)),
        )

    def overlapping(self, asset: FrozenAsset) -> Terms:
        """Return the partitions of an asset that overlap the partitions read by other assets, each
        partition once, and also partitions that have not ended.
        """
        overlapping_terms: Terms = []
        earlier_partitions = asset.nothing
        for number in range(self.number):
            term = asset.nothing
            for reader, chosen in self.readings.items():
                if chosen.terms[number]:
                    term |= slicewise.upstream_partitions(
                        reader.definition, asset.definition, chosen.terms[number]
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


def read_period(frozen: FrozenRequest) -> Period:
    """Read the period of a request by the chosen assets that have time; where none has, by other
    assets.

    Raises InvalidRequest on ``start``, ``end`` or ``selection`` if no asset can read the period,
    and if no asset has time.
    """
    request = frozen.request
    if request.selection and (request.start or request.end):
        raise InvalidRequest(
            {"selection": "Give a selection, or the first and the last partition, not both."}
        )
    field = _field(request)
    readers = [asset for asset in frozen.chosen if has_time(asset.definition)]
    readers = readers or [asset for asset in frozen.upstream if has_time(asset.definition)]
    if not readers:
        raise _no_past(request)
    if request.order == BackfillOrder.LISTED and (len(frozen.chosen) > 1 or len(readers) > 1):
        raise InvalidRequest(
            {"order": "Several assets have no listed order: choose oldest or newest."}
        )
    if len(readers) == 1:
        reader = readers[0]
        return Period({reader: _read(request, reader, frozen.at, is_alone=True)}, frozen.at, field)
    readings: dict[FrozenAsset, Chosen] = {}
    first_refusal: InvalidRequest | None = None
    for asset in readers:
        try:
            readings[asset] = _read(request, asset, frozen.at, is_alone=False)
        except InvalidRequest as refused:
            first_refusal = first_refusal or refused
    if not readings:
        assert first_refusal is not None  # noqa: S101  (each was refused)
        raise first_refusal
    return Period(readings, frozen.at, field)


def chosen_drafts(frozen: FrozenRequest, period: Period) -> dict[FrozenAsset, ScopeDraft]:
    """Return the partitions of the chosen assets in the period, term by term.

    Raises InvalidRequest if there are none, or too many.
    """
    drafts: dict[FrozenAsset, ScopeDraft] = {}
    for asset in frozen.chosen:
        chosen = period.of(asset)
        draft = ScopeDraft(asset, AssetRole.CHOSEN, list(chosen.terms), chosen.not_ended)
        draft.keep_past(frozen.at)
        drafts[asset] = draft
    number = partition_count(drafts.values())
    if not number:
        message = (
            f"{frozen.chosen[0].asset.name} has none of these partitions any more."
            if len(frozen.chosen) == 1
            else "None of these assets has partitions in this period."
        )
        raise InvalidRequest({period.field: message})
    refuse_too_many_partitions(number, period.field)
    return drafts


def _read(request: BackfillRequest, asset: FrozenAsset, now: datetime, *, is_alone: bool) -> Chosen:
    """Return the partitions of an asset with time that a request names.

    Raises InvalidRequest on ``start``, ``end`` or ``selection``. Partitions that have not ended are
    left out; for an asset that ``is_alone``, a last partition after today is refused.
    """
    definition = asset.definition
    assert definition is not None  # noqa: S101  (an asset with time has a definition)
    if request.selection:
        selection_terms = _selected(request.selection, definition)
    else:
        selection_terms = (_between(request, definition, until=now if is_alone else None),)
    ended_terms = [ended_term for term in selection_terms if (ended_term := ended_by(term, now))]
    if not ended_terms:
        raise _none_ended(_field(request), selection_terms, now)
    partitions = ended_terms[0]
    for term in ended_terms[1:]:
        partitions |= term
    not_ended = sum(map(len, selection_terms)) - len(partitions)
    listed = request.order == BackfillOrder.LISTED
    return Chosen(tuple(ended_terms) if listed else (partitions,), partitions, not_ended)


def _field(request: BackfillRequest) -> str:
    """Return the name of the field that names the partitions."""
    return "selection" if request.selection else "end"


def _no_past(request: BackfillRequest) -> InvalidRequest:
    if len(request.assets) == 1:
        reason, pronoun = f"{request.assets[0].name} has no partitions by time", "it"
    else:
        reason, pronoun = "None of these assets has partitions by time", "them"
    instead = f"materialize {pronoun} instead, or include upstream assets"
    return InvalidRequest(
        {request.chosen_field: f"{reason}, so no backfill is possible: {instead}."}
    )


def _selected(
    text: str, definition: slicewise.PartitionDefinition
) -> tuple[slicewise.PartitionSet, ...]:
    try:
        return select_ranges(definition, text)
    except ValueError as error:
        if isinstance(error.__context__, UnboundedPartitionsError):
            raise InvalidRequest(
                {
                    "selection": f"{text} has no bounds in time: give a period, for example"
                    " 2013-01 or 2013-01-01..2013-01-31."
                }
            ) from error
        raise InvalidRequest({"selection": str(error)}) from error


def _none_ended(
    field: str, selection_terms: tuple[slicewise.PartitionSet, ...], now: datetime
) -> InvalidRequest:
    hulls = [term.hull for term in selection_terms if term.hull]
    if not hulls:
        return InvalidRequest({field: "The selection has no partitions."})
    first = min(hulls, key=lambda hull: hull.start)
    return InvalidRequest(
        {
            field: "No selected partition has ended yet: the first begins at"
            f" {first.start:%Y-%m-%d %H:%M} UTC. Only the past can be backfilled."
        }
    )


def _between(
    request: BackfillRequest, definition: slicewise.PartitionDefinition, *, until: datetime | None
) -> slicewise.PartitionSet:
    """Return the partitions from the first to the last, with all segments; where ``until`` is
    given, the last partition must begin on that day or earlier.
    """
    time = definition.time_dimension
    assert time is not None  # noqa: S101  (checked by the caller)
    errors = FieldErrors()
    with errors:
        first = named_window(time, "start", request.start, first=True)
    with errors:
        last = named_window(time, "end", request.end, first=False)
    if errors.messages:
        raise InvalidRequest(errors.messages)
    if first.start > last.start:
        raise InvalidRequest({"end": f"The last partition, {last}, is before the first, {first}."})
    if until is not None and _begins_after_day(time, last, until):
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


def _begins_after_day(time: TimeDefinition, window: slicewise.Interval, now: datetime) -> bool:
    today = now.astimezone(time.zone.tzinfo_at(to_instant(now))).date()
    return window.local_start.date() > today


def named_window(time: TimeDefinition, field: str, text: str, *, first: bool) -> slicewise.Interval:
    """Return the first or the last window that the text names: the text is a key, or a month or a
    year.

    Raises InvalidRequest on ``field``.
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
