"""What a person asks for, checked: the same checks for the preview and for the creation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.utils import timezone

import slicewise
from accounts_app import policy
from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from assets_app.execution.requests import (
    Strategy,
    checked_params,
    checked_strategy,
    partitions_per_run,
    require_producer,
)
from assets_app.models import Asset, AssetPartition, PartitionState, ProducerVersion
from backfills_app.models import ExistingPolicy
from partitions_app.labels import label_of_key

T = TypeVar("T")

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """One asset, the first and the last partition (both included), and how to make them."""

    asset: Asset
    start: str
    end: str
    description: str = ""
    max_active_runs: int = 3
    strategy: Strategy | None = None
    existing: str = ExistingPolicy.MISSING_AND_FAILED
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """What the request comes to at this moment.

    ``first_key`` and ``last_key`` are windows, which people are shown as ``first_label`` and
    ``last_label``; ``selection`` is text of the selection grammar; ``start_date`` and ``end_date``
    are the half-open hull. The numbers are of partitions.
    """

    total: int
    first_key: str
    last_key: str
    first_label: str
    last_label: str
    start_date: datetime
    end_date: datetime
    selection: str
    runs: int
    materialized: int
    in_flight: int
    failed: int
    to_make: int
    strategy: Strategy
    params: dict[str, Any]
    producer_version: ProducerVersion


def request_from_text(
    asset: str,
    start: object,
    end: object,
    *,
    description: object = "",
    max_active_runs: object = 3,
    strategy: object = None,
    existing: object = ExistingPolicy.MISSING_AND_FAILED,
    params: object = None,
) -> BackfillRequest:
    """A request from what a form, a JSON body or a command line holds.

    InvalidRequest on what cannot be read.
    """
    errors: dict[str, str] = {}
    found = Asset.objects.declared().filter(name=asset).first() if isinstance(asset, str) else None
    if found is None:
        errors["asset"] = f"There is no asset {asset!r}." if asset else "Name an asset."
    texts = {"start": start, "end": end, "description": description}
    errors |= {
        name: f"{value!r} is not text."
        for name, value in texts.items()
        if not isinstance(value, str)
    }
    most = _whole_number(max_active_runs)
    if most is None:
        errors["max_active_runs"] = f"{max_active_runs!r} is not a whole number."
    if not isinstance(params, Mapping | None):
        errors["params"] = "Params are an object of names and values."
    if strategy is not None and not isinstance(strategy, str | int):
        errors["strategy"] = f"{strategy!r} is none of partition, range, or a number."
    if errors or found is None or most is None:
        raise InvalidRequest(errors)
    return BackfillRequest(
        asset=found,
        start=str(start),
        end=str(end),
        description=str(description),
        max_active_runs=most,
        strategy=strategy if isinstance(strategy, str | int) else None,
        existing=str(existing),
        params=params if isinstance(params, Mapping) else {},
    )


def check_backfill(request: BackfillRequest, *, user: User) -> BackfillPlan:
    """Check the request as creation would, and say what it comes to. Writes nothing.

    Raises PermissionDenied, and InvalidRequest with all fields that are wrong at once.
    """
    policy.require_for_assets(user, policy.Action.BACKFILL, [request.asset])
    errors: dict[str, list[str]] = {}
    version = _gather(errors, lambda: require_producer(request.asset))
    params = _gather(errors, lambda: checked_params(version, request.params)) if version else None
    strategy = (
        _gather(errors, lambda: checked_strategy(request.strategy, default=version.strategy))
        if version
        else None
    )
    _check_numbers(request, errors)
    chosen = None if "asset" in errors else _gather(errors, lambda: _range(request))
    if errors or version is None or params is None or strategy is None or chosen is None:
        raise InvalidRequest(errors)
    return _plan(request, chosen, version, strategy, params)


def _check_numbers(request: BackfillRequest, errors: dict[str, list[str]]) -> None:
    if not 1 <= request.max_active_runs <= MOST_ACTIVE_RUNS:
        errors["max_active_runs"] = [
            f"Between 1 and {MOST_ACTIVE_RUNS}, not {request.max_active_runs}."
        ]
    if len(request.description) > LONGEST_DESCRIPTION:
        errors["description"] = [
            f"At most {LONGEST_DESCRIPTION} characters, not {len(request.description)}."
        ]
    if request.existing not in ExistingPolicy.values:
        errors["existing"] = [
            f"{request.existing!r} is none of {', '.join(ExistingPolicy.values)}."
        ]


def _range(request: BackfillRequest) -> slicewise.PartitionSet:
    """The partitions from the first to the last, with all segments."""
    asset, now = request.asset, timezone.now()
    definition = asset.definition
    if definition is None or definition.time_dimension is None:
        raise InvalidRequest(
            {
                "asset": f"{asset.name} has no partitions by time, so there is no past to fill:"
                " materialize it instead."
            }
        )
    time = definition.time_dimension
    errors: dict[str, list[str]] = {}
    first = _gather(errors, lambda: _window_named(time, "start", request.start, first=True))
    last = _gather(errors, lambda: _window_named(time, "end", request.end, first=False))
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
    most = settings.MAX_PARTITIONS_PER_BACKFILL
    if len(chosen) > most:
        raise InvalidRequest(
            {
                "end": f"{len(chosen):,} partitions are more than one backfill may have"
                f" ({most:,}, setting MAX_PARTITIONS_PER_BACKFILL)."
            }
        )
    return chosen


def _window_named(
    time: slicewise.PartitionByTime, field: str, text: str, *, first: bool
) -> slicewise.Interval:
    """The first or the last window of what the text names: a key, or a month or a year of them."""
    text = text.strip()
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


def _plan(
    request: BackfillRequest,
    chosen: slicewise.PartitionSet,
    version: ProducerVersion,
    strategy: Strategy,
    params: dict[str, Any],
) -> BackfillPlan:
    total, first, last = len(chosen), chosen[0].time, chosen[-1].time
    there = AssetPartition.objects.filter(
        asset=request.asset,
        identity=request.asset.identity,
        window_start__gte=first.start,
        window_start__lt=last.end,
    )
    counts = there.idle_by_state()
    in_flight = there.filter(held_by__isnull=False).count()
    left_out = _left_out(request.existing, counts)
    to_make = max(total - left_out - in_flight, 0)
    per_run = partitions_per_run(strategy) or max(to_make, 1)
    return BackfillPlan(
        total=total,
        first_key=str(first),
        last_key=str(last),
        first_label=label_of_key(first),
        last_label=label_of_key(last),
        start_date=first.start,
        end_date=last.end,
        selection=chosen.text,
        runs=-(-to_make // per_run),
        materialized=counts.get(PartitionState.MATERIALIZED, 0),
        in_flight=in_flight,
        failed=counts.get(PartitionState.FAILED, 0),
        to_make=to_make,
        strategy=strategy,
        params=params,
        producer_version=version,
    )


def states_left_out(existing: str) -> tuple[PartitionState, ...]:
    """Which settled states keep a partition from being made again under this policy."""
    match existing:
        case ExistingPolicy.MISSING:
            return (PartitionState.MATERIALIZED, PartitionState.FAILED)
        case ExistingPolicy.MISSING_AND_FAILED:
            return (PartitionState.MATERIALIZED,)
        case _:
            return ()


def _left_out(existing: str, idle_counts: Mapping[str, int]) -> int:
    return sum(idle_counts.get(state, 0) for state in states_left_out(existing))


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value.strip())
        except ValueError:
            return None
    return None


def _gather(errors: dict[str, list[str]], work: Callable[[], T]) -> T | None:
    try:
        return work()
    except InvalidRequest as refused:
        for name, said in refused.errors.items():
            errors.setdefault(name, []).extend(said)
        return None
