"""Row 14: pages of the grid of an asset with a million partitions, beside one with a thousand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from django.db import connection
from django.test import Client

import slicewise
from accounts_app.models import User
from assets_app.models import Asset, Bundle
from bench.figures import Figure, duration, seconds
from partitions_app.models import PartitionDefinition
from slicewise.partitions.rows import partition_rows

# On the wire, of a page of the grid; `tests/pages/test_grid_weight.py` reads the limit here.
MOST_BYTES = 60_000
_PARTITIONS = """
COPY assets_app_assetpartition
    (asset_id, identity, key, window_start, window_end, segment, bucket, state, version, due_again)
FROM STDIN
"""
_COUNTS = """
INSERT INTO assets_app_partitioncount (asset_id, identity, bucket, segment, state, count)
SELECT asset_id, identity, bucket, segment, state, count(*)
FROM assets_app_assetpartition WHERE asset_id = %s GROUP BY 1, 2, 3, 4, 5
"""


def _days(start: date, end: date, airports: int) -> slicewise.PartitionDefinition:
    return slicewise.PartitionByProduct(
        {
            "day": slicewise.PartitionByInterval("@daily", start=start, end=end),
            "airport": slicewise.PartitionBySequence([f"A{n:04}" for n in range(airports)]),
        }
    )


def _minutes(end: date) -> slicewise.PartitionDefinition:
    return slicewise.PartitionByInterval("* * * * *", start=date(2024, 1, 1), end=end)


@dataclass(frozen=True, slots=True)
class Kind:
    """Two assets with equal windows, one of some thousand partitions, one of a million."""

    name: str
    small: slicewise.PartitionDefinition
    large: slicewise.PartitionDefinition
    zooms: tuple[str, ...]
    # Moments and pages of segments: the first, one in between and the last.
    moments: tuple[str, ...]
    pages: tuple[int, ...] = (1,)


KINDS = (
    Kind(
        "minutes",
        _minutes(date(2024, 1, 2)),
        _minutes(date(2025, 11, 26)),
        ("day", "month", "year", "all"),
        ("2024-01-01", "2024-12-31", "2025-11-25"),
    ),
    Kind(
        "days of each airport",
        _days(date(2024, 1, 1), date(2024, 1, 11), 100),
        _days(date(2024, 1, 1), date(2026, 9, 27), 1_000),
        ("month", "year", "all"),
        ("2024-01-01", "2025-06-15", "2026-09-26"),
        (1, 7, 10_000),
    ),
)


def declare() -> None:
    """Create a small and a large asset of each kind, with all partitions on record."""
    bundle = Bundle.objects.create(name="grids", path="/nowhere")
    for kind in KINDS:
        _declare(bundle, f"small {kind.name}", kind.small)
        _declare(bundle, f"large {kind.name}", kind.large)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def measure(times: int, record: str) -> Iterator[Figure]:
    """Return the slowest page of each kind, over all zooms and all positions."""
    browser = Client(headers={"host": "localhost"})
    browser.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    for kind in KINDS:
        yield _figure(browser, kind, times, record)


def _figure(browser: Client, kind: Kind, times: int, record: str) -> Figure:
    small = _slowest(browser, f"small {kind.name}", kind, times)
    large = _slowest(browser, f"large {kind.name}", kind, times)
    number = kind.large.count()
    return Figure(
        row=14,
        work=f"the slowest page of a grid of {number:,}, {kind.name}, {record}",
        measured=f"{duration(large.seconds)}, {large.bytes / 1000:.0f} kB ({large.address})",
        seconds=large.seconds,
        bare=f"of {kind.small.count():,} {duration(small.seconds)}",
        ratio=large.seconds / small.seconds,
        reach=f"100 ms, {MOST_BYTES // 1000} kB",
        reached=large.seconds <= 0.1 and large.bytes <= MOST_BYTES,
        times=times,
    )


@dataclass(frozen=True, slots=True)
class Slowest:
    """The time and address of the slowest page, and the compressed size of the largest."""

    seconds: float
    address: str
    bytes: int


def _slowest(browser: Client, asset: str, kind: Kind, times: int) -> Slowest:
    took: dict[str, float] = {}
    largest = 0
    for zoom, moment, page in product(kind.zooms, kind.moments, kind.pages):
        asked = f"zoom={zoom}&at={moment}&page={page}"
        address = f"/assets/{asset}/?{asked}"
        look = partial(_size, browser, address)
        largest = max(largest, look())
        took[asked] = median(seconds(look) for _ in range(times))
    slowest = max(took, key=took.__getitem__)
    return Slowest(took[slowest], slowest, largest)


def _size(browser: Client, address: str) -> int:
    answer = browser.get(address, headers={"accept-encoding": "gzip"})
    if answer.status_code != 200:
        raise ValueError(f"{address}: {answer.status_code}")
    return len(answer.content)


def _declare(bundle: Bundle, name: str, definition: slicewise.PartitionDefinition) -> None:
    """Create an asset with every tenth partition failed and all others materialized."""
    rule = PartitionDefinition.of(definition.to_json())
    asset = Asset.objects.create(name=name, bundle=bundle, partition_definition=rule)
    record_partitions(asset)


def record_partitions(asset: Asset) -> None:
    """Put all partitions of an asset on record: every tenth has failed, the others are there."""
    definition = asset.definition
    assert definition is not None
    states = ("failed", *["materialized"] * 9)
    with connection.cursor() as cursor:
        with cursor.copy(_PARTITIONS) as copy:
            for number, row in enumerate(partition_rows(definition, definition.keys())):
                state = states[number % len(states)]
                values: list[Any] = [asset.pk, asset.identity, row.key, row.start, row.end]
                copy.write_row([*values, row.segment, row.bucket, state, 1, False])
        cursor.execute(_COUNTS, [asset.pk])
