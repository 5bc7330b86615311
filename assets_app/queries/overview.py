"""Status of assets, many at once: counts per state, the latest partitions, the last success."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Case, Exists, F, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Greatest

from assets_app.models import (
    Asset,
    AssetPartition,
    AttemptOutcome,
    Run,
    RunPartition,
    RunState,
    ValidationResult,
    WriteReport,
)
from assets_app.queries.clock import database_now
from assets_app.queries.counts import HeldCounts, StateCounts
from assets_app.queries.grid import expected_count
from assets_app.queries.overdue import NONE_LATE, LateCounts, late_count_columns
from assets_app.queries.stale_counts import StaleCount, stale_counts
from assets_app.queries.state_shares import (
    StateShare,
    UrgentState,
    divided_count,
    state_shares,
    urgent_states,
)
from assets_app.queries.strips import Strip, strips_of

_NOTHING_STALE = StaleCount(0)


@dataclass(frozen=True, slots=True)
class AssetStatus:
    """The status of one asset; ``expected`` is None where only runs know the partitions, and where
    no file declares the asset any more, of which no partition is missing.
    """

    asset: Asset
    counts: dict[str, int]
    held: int
    expected: int | None
    last_success: datetime | None
    # None where no partition is expected yet.
    strip: Strip | None
    # The number among the held partitions whose run has not begun.
    queued: int = 0
    # The number among the held partitions that failed, were canceled or were skipped before: their
    # settled state does not count them.
    retried: int = 0
    stale: StaleCount = _NOTHING_STALE
    # The id of the last run that materialized partitions of the asset, where a validation of that
    # run failed as a warning.
    warned: int | None = None
    late: LateCounts = NONE_LATE
    # The held partitions by settled state, as `StateCounts.held_by_state` counts them.
    held_by_state: Mapping[str, HeldCounts] = field(default_factory=dict)

    @property
    def materialized(self) -> int:
        """The number of partitions whose last run succeeded."""
        return self.counts.get("materialized", 0)

    @property
    def failed(self) -> int:
        """The number of partitions whose last run failed."""
        return self.counts.get("failed", 0)

    @property
    def running(self) -> int:
        """The number of partitions that a run materializes now."""
        return self.held - self.queued

    @property
    def is_complete(self) -> bool:
        """Whether all expected partitions are materialized, none is stale, and nothing is under
        way.
        """
        is_unfinished = self.held or self.failed or self.missing or self.stale.number
        return not (is_unfinished or self.given_up) and self.expected != 0

    @property
    def missing(self) -> int:
        """The number of expected partitions that were never materialized, or were forgotten."""
        if self.expected is None:
            return self.counts.get("missing", 0)
        settled_count = sum(number for state, number in self.counts.items() if state != "missing")
        return max(self.expected - settled_count - self.retried, 0)

    @property
    def given_up(self) -> list[tuple[str, int]]:
        """The numbers of canceled and of skipped partitions, without zeros."""
        return [pair for pair in self.settled if pair[0] in ("canceled", "skipped")]

    @property
    def settled(self) -> list[tuple[str, int]]:
        """The states with their numbers, in the order of the pages, without empty states. The sum
        is the number of expected partitions: retried partitions are a number of their own.
        """
        order = ("materialized", "failed", "canceled", "skipped")
        counted = [(state, self.counts.get(state, 0)) for state in order]
        others = [("retried", self.retried), ("missing", self.missing)]
        return [pair for pair in [*counted, *others] if pair[1]]

    @property
    def urgent_states(self) -> list[UrgentState]:
        """The states that need attention, with their numbers, the most urgent state first."""
        in_progress = {"running": self.running, "queued": self.queued}
        late = {"overdue": self.late.overdue, "late": self.late.late}
        # Running and queued partitions have numbers of their own, so that the numbers add up.
        idle = {share.state: share.undivided for share in self.shares if share.state == "missing"}
        return urgent_states(self.counts | {"missing": 0} | in_progress | late | idle, self.stale)

    @property
    def shares(self) -> list[StateShare]:
        """The settled states, with the numbers in progress or stale among their partitions."""
        return state_shares(self.settled, self.held_by_state, self.stale)

    @property
    def has_undivided(self) -> bool:
        """Whether the shares leave out partitions in progress or stale."""
        return divided_count(self.shares) != self.held + self.stale.number


def asset_statuses(
    assets: Sequence[Asset], *, strips: bool = True, now: datetime | None = None
) -> list[AssetStatus]:
    """Return the status of each of the assets: at most fourteen statements for all of them.

    ``strips`` says whether the latest partitions are read too: four of the statements. ``now`` is
    the present by the database's clock: without it, another of the statements.
    """
    now = now or database_now()
    counts, stale = StateCounts(assets), stale_counts(assets)
    asset_times = _asset_times(assets, now)
    starts = {pk: times[0] for pk, times in asset_times.items()}
    strip_by_asset = strips_of(assets, starts, stale, now) if strips else {}
    return [
        AssetStatus(
            asset,
            counts.settled(asset),
            counts.held(asset),
            expected_count(asset, now, asset_times[asset.pk][0]) if asset.active else None,
            asset_times[asset.pk][1],
            strip_by_asset.get(asset.pk),
            counts.queued(asset),
            counts.retried(asset),
            stale.get(asset.pk, _NOTHING_STALE),
            asset_times[asset.pk][2],
            asset_times[asset.pk][3],
            counts.held_by_state(asset),
        )
        for asset in assets
    ]


def _asset_times(
    assets: Sequence[Asset], now: datetime
) -> dict[int, tuple[datetime | None, datetime | None, int | None, LateCounts]]:
    """Return (first start, last success, warned run, late partitions) by asset id: the start of the
    earliest partition, when the last run succeeded or the last write was reported, the id of that
    run if a validation warned, and the numbers of late partitions.
    """
    partitions = AssetPartition.objects.filter(
        asset=OuterRef("pk"),
        identity=OuterRef("partition_definition__identity"),
        window_start__isnull=False,
    )
    first = Subquery(partitions.order_by("window_start").values("window_start")[:1])
    reports = WriteReport.objects.filter(asset=OuterRef("pk")).order_by("-id").values("created_at")
    # PostgreSQL's GREATEST leaves nulls out.
    ended = Run.objects.filter(pk=OuterRef("last")).values("ended_at")
    success = Greatest(Subquery(ended), Subquery(reports[:1]))
    warned = ValidationResult.objects.filter(
        attempt__run=OuterRef("last"), attempt__outcome=AttemptOutcome.SUCCEEDED, passed=False
    )
    rows = _with_last_success(Asset.objects.filter(pk__in=[asset.pk for asset in assets]))
    run = Subquery(warned.order_by().values("attempt__run")[:1])
    rows_by_asset = rows.values_list("pk", first, success, run, *late_count_columns(now))
    return {
        pk: (start, success_at, warned_in, LateCounts(overdue, late))
        for pk, start, success_at, warned_in, overdue, late in rows_by_asset
    }


def _with_last_success(assets: QuerySet[Asset]) -> QuerySet[Asset]:
    """Add to each asset ``last``, the last succeeded run that materialized partitions of the asset.

    A run belongs to one asset, and materializes all outlets of its function: the latest run of
    these outlets counts where the run has a partition of the asset.
    """
    succeeded = Run.objects.filter(asset=OuterRef("pk"), state=RunState.SUCCEEDED)
    latest = Subquery(succeeded.order_by("-id").values("pk")[:1])
    outlets = Asset.objects.filter(producer=OuterRef("producer")).annotate(latest=latest)
    of_function = outlets.order_by(F("latest").desc(nulls_last=True)).values("latest")[:1]
    run_partitions = RunPartition.objects.filter(
        run=OuterRef("of_function"), partition__asset=OuterRef("pk")
    )
    return assets.annotate(of_function=Subquery(of_function)).annotate(
        last=Case(When(Exists(run_partitions), then=F("of_function")), default=latest)
    )
