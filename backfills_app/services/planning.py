"""What a request comes to at this moment: the same for the preview and for the creation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts_app import policy
from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from assets_app.execution.requests import (
    Strategy,
    checked_params,
    checked_strategy,
    partitions_per_run,
)
from assets_app.models import (
    Asset,
    AssetPartition,
    BundleVersion,
    PartitionState,
    ProducerVersion,
)
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.choosing import Chosen, choose, refuse_too_many
from backfills_app.services.freezing import (
    code_version,
    definition_of,
    frozen_version,
    require_same_cut,
)
from backfills_app.services.requests import NONE, BackfillRequest, gather
from partitions_app.labels import label_of_key

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long it would take, in seconds: by the median of past runs, and by their quartiles."""

    seconds: float
    low: float
    high: float
    runs_seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAsset:
    """What a backfill would do with one asset. The numbers are of partitions, but for ``runs``.

    ``total`` is made up of ``existing`` (left out by the policy), ``in_flight`` (another run makes
    them), ``missing_upstream`` (what they need is not there and is not made here) and ``to_make``.
    ``materialized`` and ``failed`` are how those stand that no run holds; ``stale`` and
    ``older_code`` are counted of the materialized ones where the policy asks for it.
    ``nonexistent_upstream`` are those of ``missing_upstream`` that need partitions which do not
    exist at all. ``not_over`` are beside the total. ``in_flight_by`` says which backfills (number
    and name) or other runs hold them.
    """

    asset: Asset
    version: ProducerVersion
    selection: str
    total: int
    materialized: int
    failed: int
    in_flight: int
    to_make: int
    runs: int
    strategy: Strategy
    params: dict[str, Any]
    stale: int = 0
    older_code: int = 0
    in_flight_by: tuple[tuple[int | None, str, int], ...] = ()
    not_over: int = 0
    missing_upstream: int = 0
    nonexistent_upstream: int = 0
    existing: int = 0
    mapping: dict[str, Any] | None = None
    estimate: Estimate | None = None
    # Names of the assets that its function makes together with it.
    made_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """What the request comes to at this moment.

    ``total``, ``to_make``, ``runs`` and ``estimate`` are of all its ``assets``, upstream before
    downstream; the rest is of the asset asked for. ``first_key`` and ``last_key`` are windows,
    which people are shown as ``first_label`` and ``last_label``; ``selection`` is text of the
    selection grammar; ``start_date`` and ``end_date`` are the half-open hull. ``refused`` are
    sentences on what it will not do, which keep nobody from asking for the rest.
    """

    assets: tuple[PlannedAsset, ...]
    first_key: str
    last_key: str
    first_label: str
    last_label: str
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion | None
    # What it was worked out at: what is not over then, is not made.
    at: datetime
    estimate: Estimate | None = None
    refused: tuple[str, ...] = ()

    @property
    def asked(self) -> PlannedAsset:
        """The asset asked for."""
        return self.assets[0]

    @property
    def total(self) -> int:
        """Partitions of all assets."""
        return sum(each.total for each in self.assets)

    @property
    def to_make(self) -> int:
        """Those of all assets that it would make."""
        return sum(each.to_make for each in self.assets)

    @property
    def runs(self) -> int:
        """Runs of all assets."""
        return sum(each.runs for each in self.assets)

    @property
    def selection(self) -> str:
        """Of the asset asked for, as the others of these."""
        return self.asked.selection

    @property
    def materialized(self) -> int:
        return self.asked.materialized

    @property
    def failed(self) -> int:
        return self.asked.failed

    @property
    def in_flight(self) -> int:
        return self.asked.in_flight

    @property
    def strategy(self) -> Strategy:
        return self.asked.strategy

    @property
    def params(self) -> dict[str, Any]:
        return self.asked.params

    @property
    def producer_version(self) -> ProducerVersion:
        return self.asked.version


def check_backfill(request: BackfillRequest, *, user: User) -> BackfillPlan:
    """Check the request as creation would, and say what it comes to. Writes nothing.

    Raises PermissionDenied, and InvalidRequest with all fields that are wrong at once.
    """
    policy.require_for_assets(user, policy.Action.BACKFILL, [request.asset])
    now = timezone.now()
    errors: dict[str, list[str]] = {}
    frozen_from = gather(errors, lambda: code_version(request.asset, request.code_version))
    version = gather(errors, lambda: _frozen(request.asset, frozen_from))
    params = gather(errors, lambda: checked_params(version, request.params)) if version else None
    strategy = (
        gather(errors, lambda: checked_strategy(request.strategy, default=version.strategy))
        if version
        else None
    )
    _check_words(request, errors)
    chosen = None if version is None else gather(errors, lambda: _chosen(request, version, now))
    if errors or version is None or params is None or strategy is None or chosen is None:
        raise InvalidRequest(errors)
    return _plan(request, chosen, version, strategy, params, now)


def _frozen(asset: Asset, bundle_version: BundleVersion | None) -> ProducerVersion:
    version = frozen_version(asset, bundle_version)
    require_same_cut(asset, version)
    return version


def _chosen(request: BackfillRequest, version: ProducerVersion, now: datetime) -> Chosen:
    chosen = choose(request, definition_of(request.asset, version), now)
    refuse_too_many(len(chosen.whole), "selection" if request.selection else "end")
    return chosen


def _check_words(request: BackfillRequest, errors: dict[str, list[str]]) -> None:
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
    if request.downstream != NONE:
        errors["downstream"] = ["Downstream assets cannot be included yet."]
    if request.order not in BackfillOrder.values:
        errors["order"] = [f"{request.order!r} is none of {', '.join(BackfillOrder.values)}."]


def _plan(
    request: BackfillRequest,
    chosen: Chosen,
    version: ProducerVersion,
    strategy: Strategy,
    params: dict[str, Any],
    now: datetime,
) -> BackfillPlan:
    first, last = chosen.whole[0].time, chosen.whole[-1].time
    return BackfillPlan(
        assets=(_planned(request, chosen, version, strategy, params),),
        first_key=str(first),
        last_key=str(last),
        first_label=label_of_key(first),
        last_label=label_of_key(last),
        start_date=first.start,
        end_date=last.end,
        code_version=version.bundle_version,
        at=now,
    )


def _planned(
    request: BackfillRequest,
    chosen: Chosen,
    version: ProducerVersion,
    strategy: Strategy,
    params: dict[str, Any],
) -> PlannedAsset:
    total, first, last = len(chosen.whole), chosen.whole[0].time, chosen.whole[-1].time
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
    return PlannedAsset(
        asset=request.asset,
        version=version,
        selection=chosen.text,
        total=total,
        materialized=counts.get(PartitionState.MATERIALIZED, 0),
        failed=counts.get(PartitionState.FAILED, 0),
        in_flight=in_flight,
        existing=left_out,
        to_make=to_make,
        runs=-(-to_make // per_run),
        strategy=strategy,
        params=params,
        not_over=chosen.not_over,
        made_with=tuple(name for name in version.outlets if name != request.asset.name),
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
