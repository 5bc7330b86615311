"""The demo's work: backfills layer by layer, watched through the API."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from slicewise_server.stack.demo.client import Client

# An asset comes after its upstream assets. None: an unpartitioned asset.
Range = tuple[str, str] | None
YEAR = ("2013-01-01", "2013-12-31")
LAYERS: Sequence[dict[str, Range]] = (
    {"raw_flights": YEAR, "weather": YEAR, "carriers": None},
    {
        "daily_delays": YEAR,
        "delays_by_origin": YEAR,
        "observations": ("2013-01-01", "2013-01-03"),
    },
    {"monthly_report": ("2013-01", "2013-12")},
)
_ENDED = {"succeeded", "partially_failed", "failed", "canceled", "skipped"}
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class AssetResult:
    """The counts of an asset after the demo's work, and the seconds that the work took.

    `seconds` is None for an asset that was materialized before.
    """

    asset: str
    partitions: int
    rows: int
    seconds: float | None


def make_everything(client: Client) -> list[AssetResult]:
    """Materialize the missing partitions of 2013; return the counts of each asset."""
    seconds: dict[str, float | None] = {}
    with Progress(
        TextColumn("{task.description:>17}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("partitions"),
        TimeElapsedColumn(),
    ) as progress:
        for layer in LAYERS:
            seconds |= _make_layer(client, progress, layer)
    return [_count(client, asset, seconds[asset]) for layer in LAYERS for asset in layer]


def _make_layer(
    client: Client, progress: Progress, layer: dict[str, Range]
) -> dict[str, float | None]:
    requests = {asset: _request(client, asset, dates) for asset, dates in layer.items()}
    bars = {
        asset: progress.add_task(asset, total=None if address else 1, completed=0 if address else 1)
        for asset, address in requests.items()
    }
    waiting = {asset: address for asset, address in requests.items() if address}
    for asset in set(layer) - set(waiting):
        progress.stop_task(bars[asset])
    seconds: dict[str, float | None] = dict.fromkeys(layer)
    while waiting:
        time.sleep(_LOOK_SECONDS)
        for asset, address in list(waiting.items()):
            progress_json = client.get(address)
            total, ended_count, materialized_count = _progress(progress_json)
            progress.update(bars[asset], total=total, completed=ended_count)
            if progress_json["state"] in _ENDED:
                del waiting[asset]
                seconds[asset] = _duration(progress_json) if materialized_count else None
    return seconds


def _request(client: Client, asset: str, dates: Range) -> str | None:
    """Request the missing partitions; return the address to watch.

    Return None for an unpartitioned asset that is materialized already.
    """
    if dates is not None:
        start, end = dates
        created = client.post(
            "/backfills/", asset=asset, start=start, end=end, description="The flights of 2013"
        )
        return f"/backfills/{created['id']}/"
    if client.get(f"/assets/{asset}/")["counts"].get("materialized"):
        return None
    created = client.post(f"/assets/{asset}/materialize/")
    return f"/runs/{created['runs'][0]}/"


def _progress(progress_json: dict[str, Any]) -> tuple[int, int, int]:
    """Return the numbers of all, ended and materialized partitions of a backfill or a run."""
    counts = progress_json.get("counts")
    if counts is None:
        materialized_count = int(progress_json["state"] == "succeeded")
        return 1, int(progress_json["state"] in _ENDED), materialized_count
    ended_count = sum(counts[state] for state in ("succeeded", "failed", "canceled", "skipped"))
    return counts["total"], ended_count, counts["succeeded"]


def _duration(progress_json: dict[str, Any]) -> float:
    began = progress_json.get("submitted_at") or progress_json["created_at"]
    ended = progress_json.get("run_end_date") or progress_json["ended_at"]
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _count(client: Client, asset: str, seconds: float | None) -> AssetResult:
    materialized = [
        partition
        for partition in client.every(f"/assets/{asset}/partitions/?page_size=1000")
        if partition["state"] == "materialized"
    ]
    return AssetResult(
        asset, len(materialized), sum(partition["rows"] or 0 for partition in materialized), seconds
    )
