"""Row 19: overdue partitions of very many assets: counted for pages, and recorded by a beat."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter

from assets_app.models import Asset, FreshnessWatch, LatePartition
from assets_app.queries.most_counted import assets_with_most
from assets_app.queries.overdue import late_total, overdue_by_asset
from assets_app.scheduling.freshness import watch_freshness
from bench.figures import Figure, duration
from bench.ticks import ASSETS

_SINCE = datetime(2024, 7, 1, 12, tzinfo=UTC)
_NOW = _SINCE + timedelta(days=1)
_REACH = 0.1


def declare() -> None:
    """Measure overdue partitions of the assets of the row of ticks."""
    FreshnessWatch.objects.bulk_create(
        FreshnessWatch(
            asset=asset, identity=asset.identity, freshness={"within": 7200},
            watched_until=_SINCE, next_at=_NOW - timedelta(hours=10),
        )
        for asset in Asset.objects.filter(bundle__name="many").select_related(
            "partition_definition"
        )
    )  # fmt: skip


def measure(times: int, record: str) -> Iterator[Figure]:
    """Make one partition of each asset overdue at the same moment."""
    LatePartition.objects.all().delete()
    FreshnessWatch.objects.update(watched_until=_SINCE, next_at=_NOW - timedelta(hours=10))
    began = perf_counter()
    watch_freshness(_NOW)
    yield _figure(
        f"{ASSETS:,} partitions noted and announced, {record}", perf_counter() - began, 10
    )
    counts: tuple[tuple[str, Callable[[datetime], object]], ...] = (
        ("counted", late_total), ("the ten assets with most", _most),
    )  # fmt: skip
    for work, count in counts:
        took = min(_timed(count) for _ in range(times))
        yield _figure(f"overdue partitions of {ASSETS:,} assets, {work}, {record}", took, _REACH)


def _most(now: datetime) -> object:
    return assets_with_most(overdue_by_asset(now), 10)


def _timed(count: Callable[[datetime], object]) -> float:
    began = perf_counter()
    count(_NOW)
    return perf_counter() - began


def _figure(work: str, took: float, reach: float) -> Figure:
    return Figure(
        row=19, work=work, measured=duration(took), seconds=took, reach=duration(reach),
        reached=took <= reach,
    )  # fmt: skip
