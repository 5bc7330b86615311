"""The demo's work: backfills layer by layer, watched through the API."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from config.demo.client import Client

# What reads another asset comes after it. None: not partitioned, materialized as a whole.
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
class Made:
    """What there is of an asset after the demo's work, and how long that took.

    None if it was there before.
    """

    asset: str
    partitions: int
    rows: int
    seconds: float | None


def make_everything(client: Client) -> list[Made]:
    """Make all of 2013 that is not there yet; what there is of each asset then."""
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
    requests = {asset: _request(client, asset, part) for asset, part in layer.items()}
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
            seen = client.get(address)
            total, done, made = _progress(seen)
            progress.update(bars[asset], total=total, completed=done)
            if seen["state"] in _ENDED:
                del waiting[asset]
                seconds[asset] = _duration(seen) if made else None
    return seconds


def _request(client: Client, asset: str, part: Range) -> str | None:
    """Ask for what is missing; the address to watch, None when a whole asset is there already."""
    if part is not None:
        start, end = part
        made = client.post(
            "/backfills/", asset=asset, start=start, end=end, description="The flights of 2013"
        )
        return f"/backfills/{made['id']}/"
    if client.get(f"/assets/{asset}/")["counts"].get("materialized"):
        return None
    made = client.post(f"/assets/{asset}/materialize/")
    return f"/runs/{made['runs'][0]}/"


def _progress(seen: dict[str, Any]) -> tuple[int, int, int]:
    """Total, done and made partitions of a backfill or a run as the API shows it."""
    counts = seen.get("counts")
    if counts is None:
        made = int(seen["state"] == "succeeded")
        return 1, int(seen["state"] in _ENDED), made
    done = sum(counts[state] for state in ("succeeded", "failed", "canceled", "skipped"))
    return counts["total"], done, counts["succeeded"]


def _duration(seen: dict[str, Any]) -> float:
    began = seen.get("submitted_at") or seen["created_at"]
    ended = seen.get("run_end_date") or seen["ended_at"]
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _count(client: Client, asset: str, seconds: float | None) -> Made:
    made = [
        partition
        for partition in client.every(f"/assets/{asset}/partitions/?page_size=1000")
        if partition["state"] == "materialized"
    ]
    return Made(asset, len(made), sum(partition["rows"] or 0 for partition in made), seconds)
