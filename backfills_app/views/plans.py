"""The preview of a plan in words: the outcome for the partitions of each asset."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from backfills_app.models import ExistingPolicy
from backfills_app.services import (
    FEWEST_RUNS,
    MOST_HOLDERS,
    BackfillPlan,
    Estimate,
    HeldPartitions,
    MissingUpstream,
    PlannedAsset,
)
from partitions_app.templatetags.slicewise_pages import duration

_SKIPPED = "skip"
_AGAIN = "run again"
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """A backfill that materializes partitions now, or the runs outside backfills that do so; with
    the address of the page.
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plan: a number of partitions and their outcome; ``holders`` are the backfills
    and runs that materialize these partitions now, each with its number of partitions, ``missing``
    the upstream partitions that these partitions need.
    """

    label: str
    number: int
    becomes: str
    warns: bool = False
    holders: tuple[tuple[Holder, int], ...] = ()
    more_holders: int = 0
    missing: tuple[MissingUpstream, ...] = ()


@dataclass(frozen=True, slots=True)
class AssetPlan:
    """The texts of a plan for one asset."""

    planned: PlannedAsset
    lines: tuple[Line, ...]
    strategy: str
    time: str

    @property
    def warned(self) -> tuple[Line, ...]:
        """The lines to show beside the heading, for a person who reads only the heading."""
        return tuple(line for line in self.lines if line.warns)


def planned_page(plan: BackfillPlan, existing: str) -> dict[str, Any]:
    """Return the context of the preview."""
    running = _with_runs(plan.assets)
    assets = [_asset_plan(planned, existing) for planned in plan.assets]
    return {
        "plan": plan,
        "layers": [layer for layer in map(_with_runs, plan.layers) if layer],
        "zone": plan.zone,
        # Of other assets nothing runs: their partitions are skipped.
        "assets_with_runs": len(running),
        "also_materialized": sorted(
            {name for planned in running for name in planned.materialized_with}
        ),
        "without_runs": _without_runs(assets) if running else {},
        "assets": assets,
        "time": time_in_words(plan.estimate, _without_estimate(running)),
    }


def first_holders(assets: Iterable[PlannedAsset]) -> dict[Holder, int]:
    """Return the first backfills and runs that hold partitions of assets, with the number of these
    partitions.
    """
    counts: dict[Holder, int] = {}
    for planned in assets:
        for held_partitions in planned.in_flight_by:
            holder = Holder(held_partitions.name, _holder_address(planned, held_partitions))
            counts[holder] = counts.get(holder, 0) + held_partitions.partition_count
    return dict(islice(counts.items(), MOST_HOLDERS))


def _holder_address(planned: PlannedAsset, held_partitions: HeldPartitions) -> str:
    """Return the address of a backfill, or of the other runs that hold partitions; of all runs of
    the asset if the other runs have several requests.
    """
    if held_partitions.backfill_id is not None:
        return reverse("backfills:backfill", args=[held_partitions.backfill_id])
    one_group = held_partitions.group_id is not None
    query = {"group": held_partitions.group_id} if one_group else {"asset": planned.asset.name}
    return f"{reverse('assets:runs')}?{urlencode(query)}"


def _with_runs(assets: Iterable[PlannedAsset]) -> list[PlannedAsset]:
    return [planned for planned in assets if planned.runs]


def _without_runs(assets: Iterable[AssetPlan]) -> dict[str, list[str]]:
    """Return the names of the assets without runs, by the numbers of their partitions in words."""
    names: dict[str, list[str]] = {}
    for asset_plan in assets:
        if not asset_plan.planned.runs:
            numbers = [f"{line.number:,} {line.label.lower()}" for line in asset_plan.lines]
            reason = ", ".join(numbers) or "no partitions"
            names.setdefault(reason, []).append(asset_plan.planned.asset.name)
    return names


def _without_estimate(running: Iterable[PlannedAsset]) -> list[str]:
    return [planned.asset.name for planned in running if planned.estimate is None]


def time_in_words(estimate: Estimate | None, unknown_names: Sequence[str] = ()) -> str:
    """Return the estimated duration in words, with the spread of past runs; without an estimate,
    the names of the assets that have too few runs.
    """
    if estimate is None:
        names = ", ".join(unknown_names[:_MOST_NAMES])
        of_assets = f" of {names}" if names else ""
        more_count = len(unknown_names) - _MOST_NAMES
        and_more = f" and {more_count:,} more" if more_count > 0 else ""
        return (
            f"No estimate: fewer than {FEWEST_RUNS} succeeded runs{of_assets}{and_more}"
            " have about as many partitions"
        )
    about = f"about {duration(timedelta(seconds=estimate.seconds))}"
    low, high = (duration(timedelta(seconds=seconds)) for seconds in (estimate.low, estimate.high))
    if low == high:
        return about
    return f"{about} ({low} to {high}, based on {estimate.runs_seen:,} runs)"


def _asset_plan(planned: PlannedAsset, existing: str) -> AssetPlan:
    return AssetPlan(
        planned,
        tuple(line for line in _lines(planned, existing) if line.number),
        _strategy(planned.strategy),
        time_in_words(planned.estimate) if planned.estimate else "",
    )


def _lines(planned: PlannedAsset, existing: str) -> Iterator[Line]:
    failed_too = existing != ExistingPolicy.MISSING
    yield Line("Materialized", planned.materialized, _of_materialized(planned, existing))
    yield Line("Failed", planned.failed, _AGAIN if failed_too else _SKIPPED)
    is_by_this = existing != ExistingPolicy.STALE
    yield Line("Upstream in this backfill" if is_by_this else "Stale", planned.stale, _AGAIN)
    yield Line("From older code", planned.older_code, _AGAIN)
    yield Line(
        "In progress",
        planned.in_flight,
        "skip",
        holders=tuple(first_holders([planned]).items()),
        more_holders=max(len(planned.in_flight_by) - MOST_HOLDERS, 0),
    )
    yield Line("Not ended yet", planned.not_ended, "skip: time window has not ended")
    missing_count = planned.upstream_missing - planned.upstream_nonexistent
    yield Line(
        "Upstream missing",
        missing_count,
        "will be skipped",
        True,
        missing=planned.missing_by_asset,
    )
    texts = "; ".join(
        upstream_gap.reason for upstream_gap in planned.upstream_gaps if upstream_gap.reason
    )
    yield Line(
        "Upstream does not exist",
        planned.upstream_nonexistent,
        f"will be skipped, needs {texts}" if texts else "will be skipped",
        True,
    )
    for upstream_gap in planned.upstream_gaps:
        yield Line(f"Excluded by {upstream_gap.asset}", upstream_gap.excluded, "not needed")


def _of_materialized(planned: PlannedAsset, existing: str) -> str:
    if existing == ExistingPolicy.ALL:
        return _AGAIN
    if planned.stale or planned.older_code:
        return "skip, except for the lines below"
    return _SKIPPED


def _strategy(strategy: str | int) -> str:
    match strategy:
        case "partition":
            return "one partition per run"
        case "range":
            return ""
        case _:
            return f"up to {strategy:,} partitions per run"
