"""The terms of schedules about lateness: `After` and `Fresh` (AIP-73, tolerations)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from slicewise.declaring.declared_asset import AssetReference
from slicewise.declaring.lateness_spans import SECOND, check_span, span_text
from slicewise.declaring.schedule_terms import Schedulable, schedule_value_text
from slicewise.declaring.schedules import (
    Schedule,
    evaluate_schedule,
    schedule_json,
    schedule_names,
    schedule_terms,
)
from slicewise.errors import DefinitionError
from slicewise.partitions.definition import PartitionDefinition


@dataclass(frozen=True)
class After(Schedulable):
    """From so long after the end of a partition's window, as a term of a schedule.

    ``(a & b) | (a & After(timedelta(hours=6)))`` waits six hours for ``b``, and then goes on
    without it. The span is a positive number of whole seconds. A partition that was made without
    ``b`` is stale once ``b`` comes; with ``remake=True`` the partition is then made again, once.
    Raises DefinitionError.
    """

    span: timedelta
    remake: bool = False

    def __post_init__(self) -> None:
        check_span("After", self.span, example="After(timedelta(hours=6)), for example")
        remake: object = self.remake
        if not isinstance(remake, bool):
            raise DefinitionError(f"remake is True or False, not {remake!r}")

    def __repr__(self) -> str:
        return f"After({span_text(self.span)}{', remake=True' if self.remake else ''})"

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "after", "seconds": ...}``, with ``"remake": true`` if asked for."""
        remake = {"remake": True} if self.remake else {}
        return {"kind": "after", "seconds": self.span // SECOND, **remake}

    def asset_names(self) -> Iterator[str]:
        """Return no names, because the term is a time."""
        yield from ()


@dataclass(frozen=True)
class Fresh(Schedulable):
    """While the newest materialization of an asset is no older than a span, as a term of a
    schedule.

    Of a partitioned asset, the partitions count that a partition needs, by the overlap rule or by
    ``upstream={asset: ...}``. A new materialization of the asset makes no partition due that was
    not waiting for the asset: ``a & Fresh(model, within=timedelta(days=30))`` is due when ``a`` is
    written, unless the model is too old then. The span is a positive number of whole seconds.
    Raises DefinitionError.
    """

    asset: AssetReference
    within: timedelta

    def __post_init__(self) -> None:
        asset: object = self.asset
        if not isinstance(asset, AssetReference):
            raise DefinitionError(f"Fresh takes an asset, not {schedule_value_text(asset)}")
        check_span("Fresh(..., within=...)", self.within, example="timedelta(days=30)")

    def __repr__(self) -> str:
        return f"Fresh({self.asset!r}, within={span_text(self.within)})"

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "fresh", "name": ..., "seconds": ...}``."""
        return {"kind": "fresh", "name": self.asset.name, "seconds": self.within // SECOND}

    def asset_names(self) -> Iterator[str]:
        """Yield the name of the asset."""
        yield self.asset.name


def check_lateness(
    schedule: Schedule, partition: PartitionDefinition | None, made: Collection[str]
) -> None:
    """Raise DefinitionError for a term of lateness that makes no sense in its schedule.

    ``made`` are the names of the assets that the function materializes.
    """
    spec = schedule_json(schedule)
    if spec is None:
        return
    after = [term for term in schedule_terms(spec) if term["kind"] == "after"]
    fresh = [term for term in schedule_terms(spec) if term["kind"] == "fresh"]
    if after and (partition is None or partition.time_dimension is None):
        raise DefinitionError(
            "After counts from the end of a window, and this asset has no partitions by time; write"
            ' Cron("@daily") or Every(...), or partition=PartitionByInterval("@daily")'
        )
    if not schedule_names(spec) and not fresh and any(term.get("remake") for term in after):
        raise DefinitionError(
            "remake=True materializes a partition again when a missing input has come, and this"
            " schedule names no asset; leave remake out"
        )
    for term in fresh:
        if term["name"] in made:
            raise DefinitionError(f"Fresh names {term['name']!r}, the asset that the run writes")
    if _is_met_by_fresh_alone(spec):
        raise DefinitionError(
            f"Fresh({fresh[0]['name']}) alone makes no partition due; combine Fresh with an asset"
            " or a time: write (... & Fresh(...))"
        )


def _is_met_by_fresh_alone(spec: dict[str, Any]) -> bool:
    return evaluate_schedule(spec, _is_fresh, of_any=any, of_all=all)


def _is_fresh(term: Mapping[str, Any]) -> bool:
    return bool(term["kind"] == "fresh")
