"""Status of assets, many at once: counts per state, the latest partitions, the last success."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection
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
from assets_app.queries.counts import StateCounts
from assets_app.queries.grid import expected_count
from partitions_app.state_badges import StateBadge, badge_of_partition

STRIP_LENGTH = 30
_LATEST = """
    SELECT wanted.id, latest.key, latest.state, run.state
    FROM unnest(%s::bigint[], %s::text[]) AS wanted (id, identity)
    CROSS JOIN LATERAL (
        SELECT key, state, held_by_id, window_start, segment FROM {slices}
        WHERE asset_id = wanted.id AND identity = wanted.identity AND window_start IS NOT NULL
        ORDER BY window_start DESC, segment DESC LIMIT %s
    ) AS latest
    LEFT JOIN {runs} AS run ON run.id = latest.held_by_id
    ORDER BY wanted.id, latest.window_start, latest.segment
"""


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
    strip: list[tuple[StateBadge, str]]
    # The id of the last run that materialized partitions of the asset, where a validation of that
    # run failed as a warning.
    warned: int | None = None

    @property
    def materialized(self) -> int:
        """The number of partitions whose last run succeeded."""
        return self.counts.get("materialized", 0)

    @property
    def failed(self) -> int:
        """The number of partitions whose last run failed."""
        return self.counts.get("failed", 0)

    @property
    def missing(self) -> int:
        """The number of expected partitions that were never materialized, or were forgotten."""
        if self.expected is None:
            return self.counts.get("missing", 0)
        settled_count = sum(number for state, number in self.counts.items() if state != "missing")
        return max(self.expected - settled_count, 0)

    @property
    def settled(self) -> list[tuple[str, int]]:
        """The states with their numbers, in the order of the pages, without empty states."""
        order = ("materialized", "failed", "canceled", "skipped")
        counted = [(state, self.counts.get(state, 0)) for state in order]
        return [pair for pair in [*counted, ("missing", self.missing)] if pair[1]]


def asset_statuses(assets: Sequence[Asset]) -> list[AssetStatus]:
    """Return the status of each of the assets: at most five statements for all of them."""
    now = datetime.now(UTC)
    counts, strips = StateCounts(assets), _strips(assets)
    asset_times = _asset_times(assets)
    return [
        AssetStatus(
            asset,
            counts.settled(asset),
            counts.held(asset),
            expected_count(asset, now, asset_times[asset.pk][0]) if asset.active else None,
            asset_times[asset.pk][1],
            strips.get(asset.pk, []),
            asset_times[asset.pk][2],
        )
        for asset in assets
    ]


def _asset_times(
    assets: Sequence[Asset],
) -> dict[int, tuple[datetime | None, datetime | None, int | None]]:
    """Return (first start, last success, warned run) by asset id: the start of the earliest
    partition, when the last run succeeded or the last write was reported, and the id of that run if
    a validation warned.
    """
    slices = AssetPartition.objects.filter(
        asset=OuterRef("pk"),
        identity=OuterRef("partition_definition__identity"),
        window_start__isnull=False,
    )
    first = Subquery(slices.order_by("window_start").values("window_start")[:1])
    reports = WriteReport.objects.filter(asset=OuterRef("pk")).order_by("-id").values("created_at")
    # PostgreSQL's GREATEST leaves nulls out.
    ended = Run.objects.filter(pk=OuterRef("last")).values("ended_at")
    success = Greatest(Subquery(ended), Subquery(reports[:1]))
    warned = ValidationResult.objects.filter(
        attempt__run=OuterRef("last"), attempt__outcome=AttemptOutcome.SUCCEEDED, passed=False
    )
    rows = _with_last_success(Asset.objects.filter(pk__in=[asset.pk for asset in assets]))
    run = Subquery(warned.order_by().values("attempt__run")[:1])
    rows_by_asset = rows.values_list("pk", first, success, run)
    return {
        pk: (start, success_at, warned_in) for pk, start, success_at, warned_in in rows_by_asset
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
        run=OuterRef("of_function"), slice__asset=OuterRef("pk")
    )
    return assets.annotate(of_function=Subquery(of_function)).annotate(
        last=Case(When(Exists(run_partitions), then=F("of_function")), default=latest)
    )


def _strips(assets: Sequence[Asset]) -> dict[int, list[tuple[StateBadge, str]]]:
    query = _LATEST.format(slices=AssetPartition._meta.db_table, runs=Run._meta.db_table)
    strips: dict[int, list[tuple[StateBadge, str]]] = {}
    with connection.cursor() as cursor:
        ids, identities = [asset.pk for asset in assets], [asset.identity for asset in assets]
        cursor.execute(query, [ids, identities, STRIP_LENGTH])
        for asset_id, key, state, run_state in cursor.fetchall():
            strips.setdefault(asset_id, []).append((badge_of_partition(state, run_state), key))
    return strips
