"""What a request comes to at this moment: the same for the preview and for the creation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import slicewise
from accounts_app.models import User
from assets_app.execution.requests import Strategy, partitions_per_run
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.models import Backfill
from backfills_app.services.checking import Checked, checked
from backfills_app.services.estimates import Estimate, estimated, runs_at_once, summed
from backfills_app.services.needs import gaps, lacking, there
from backfills_app.services.parts import Edge, Part
from backfills_app.services.requests import BackfillRequest
from backfills_app.services.spans import spans
from backfills_app.services.surveying import left_out, standing
from partitions_app.labels import label_of_key
from partitions_app.rules import UpstreamGap


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAsset:
    """What a backfill would do with one asset. The numbers are of partitions, but for ``runs``.

    ``total`` is made up of ``existing`` (left out by the policy), ``in_flight`` (another run makes
    them), ``missing_upstream`` (what they need is not there and is not made here) and ``to_make``.
    ``materialized`` and ``failed`` are how those stand that no run holds; ``stale`` and
    ``older_code`` are those of the materialized ones that are made again for that reason.
    ``nonexistent_upstream`` are those of ``missing_upstream`` that need partitions which do not
    exist at all. ``not_over`` are beside the total. ``in_flight_by`` says which backfills (number
    and name) or other runs hold them. ``layer`` is 1 where it needs no other asset of the backfill,
    else one more than the highest of those that it needs.
    """

    asset: Asset
    version: ProducerVersion
    role: str
    layer: int
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
    # What does not exist of what they need, and what is excluded of it, by upstream asset.
    gaps: tuple[UpstreamGap, ...] = ()
    existing: int = 0
    mapping: dict[str, Any] | None = None
    estimate: Estimate | None = None
    # Names of the assets that its function makes together with it.
    made_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """What the request comes to at this moment.

    ``total``, ``to_make``, ``runs`` and ``estimate`` are of all its ``assets``, upstream before
    downstream; the rest is of the first chosen asset, ``asked``. ``first_key`` and ``last_key`` are
    windows, which people are shown as ``first_label`` and ``last_label``, cut in ``zone``;
    ``selection`` is text of the selection grammar; ``start_date`` and ``end_date`` are the
    half-open hull. ``refused`` are sentences on what it will not do, which keep nobody from asking
    for the rest.
    """

    assets: tuple[PlannedAsset, ...]
    asked: PlannedAsset
    zone: str
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
    def layers(self) -> list[list[PlannedAsset]]:
        """The assets by layer: each after those of the layers before it, partition by partition."""
        found: list[list[PlannedAsset]] = []
        for planned in sorted(self.assets, key=lambda each: each.layer):
            if not found or found[-1][0].layer != planned.layer:
                found.append([])
            found[-1].append(planned)
        return found

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
        """Of the first chosen asset, as the others of these."""
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
    found = checked(request, user=user)
    assets = _planned_assets(request, found)
    windows = found.timed.whole
    first, last = windows[0].time, windows[-1].time
    time = found.timed.definition.time_dimension if found.timed.definition else None
    assert time is not None  # noqa: S101  (it has time)
    return BackfillPlan(
        assets=assets,
        asked=next(each for each in assets if each.asset == found.asked.asset),
        zone=time.timezone,
        first_key=str(first),
        last_key=str(last),
        first_label=label_of_key(first),
        last_label=label_of_key(last),
        start_date=found.start_date,
        end_date=found.end_date,
        code_version=found.code_version,
        at=found.at,
        estimate=summed(each.estimate for each in assets),
        refused=tuple(found.refused),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of an asset's partitions, as far as can be seen.

    ``made`` are those of this backfill and those that other runs are making.
    """

    made: slicewise.PartitionSet
    missing: slicewise.PartitionSet


def _planned_assets(request: BackfillRequest, found: Checked) -> tuple[PlannedAsset, ...]:
    outcomes: dict[Part, _Outcome] = {}
    at_once = runs_at_once(request.max_active_runs)

    def available(edge: Edge, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
        outcome = outcomes.get(edge.part) if edge.part is not None else None
        if outcome is None:
            return there(edge, needed)
        rest = needed - outcome.made
        return (needed - rest) | ((there(edge, rest) if rest else rest) - outcome.missing)

    planned = []
    for part in found.parts:
        now = standing(part, part.whole)
        upstream = [
            (edge, outcomes[edge.part].made) for edge in part.edges if edge.part is not None
        ]
        left = left_out(request.existing, part, now, upstream)
        rest = part.whole - left.existing - now.held
        lacks = lacking(part, rest, available)
        to_make = rest - lacks.all
        outcomes[part] = _Outcome(made=to_make | now.held, missing=lacks.all)
        runs = runs_of(part, to_make, allow_holes=request.allow_holes)
        planned.append(
            PlannedAsset(
                asset=part.asset,
                version=part.version,
                role=part.role,
                layer=part.layer,
                selection=part.selection,
                total=len(part.whole),
                materialized=len(now.materialized),
                failed=len(now.failed),
                stale=len(left.stale),
                older_code=len(left.older_code),
                in_flight=len(now.held),
                in_flight_by=_holders(part, now.held),
                not_over=part.not_over,
                missing_upstream=len(lacks.all),
                nonexistent_upstream=len(lacks.nonexistent),
                gaps=gaps(part, part.whole, available),
                existing=len(left.existing),
                to_make=len(to_make),
                runs=runs,
                strategy=part.strategy,
                params=part.params,
                mapping=part.mapping,
                estimate=estimated(part.asset, len(to_make), runs, at_once),
                made_with=tuple(each.name for each in part.outlets if each != part.asset),
            )
        )
    return tuple(planned)


def runs_of(part: Part, to_make: slicewise.PartitionSet, *, allow_holes: bool) -> int:
    """Count the runs that make these partitions, as admission splits them."""
    size = partitions_per_run(part.strategy)
    if size is None:
        return int(bool(to_make))
    if size == 1:
        return len(to_make)
    lengths: Sequence[int]
    if allow_holes:
        lengths = [len(to_make & term) for term in part.terms]
    else:
        lengths = [
            stop - first
            for term in part.terms
            for first, stop in part.places.unbroken(to_make & term)
        ]
    return sum(-(-length // size) for length in lengths)


def _holders(part: Part, held: slicewise.PartitionSet) -> tuple[tuple[int | None, str, int], ...]:
    """Which backfills hold how many of them; None for other runs."""
    if not held:
        return ()
    by_backfill = spans(
        part.definition,
        part.outlets,
        held,
        label="coalesce(asked.id::text, '')",
        joins="JOIN assets_app_run AS holder ON holder.id = slice.held_by_id"
        " LEFT JOIN backfills_app_backfill AS asked ON asked.group_id = holder.group_id",
    )
    names: Mapping[int, str] = dict(
        Backfill.objects.filter(pk__in=[int(pk) for pk in by_backfill if pk]).values_list(
            "pk", "name"
        )
    )
    return tuple(
        (int(pk), names[int(pk)], len(some)) if pk else (None, "other runs", len(some))
        for pk, some in sorted(by_backfill.items())
    )
