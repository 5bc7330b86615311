"""Two assets that are due each second, and the arithmetic of the expected partitions."""

import time
from datetime import datetime, timedelta
from types import TracebackType

from slicewise_server.stack.demo.client import Client
from tests.faults.stack_processes import Crew, until

ASSETS = ("tick", "tock")

_SCHEDULE = """
SELECT schedule.id, schedule.handled_until FROM assets_app_schedule AS schedule
JOIN assets_app_producer AS producer ON producer.id = schedule.producer_id WHERE producer.name = %s
"""
_MADE = """
SELECT partition.window_end, partition.state, partition.version, count(run_partition.run_id)
FROM assets_app_assetpartition AS partition
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
LEFT JOIN assets_app_runpartition AS run_partition ON run_partition.partition_id = partition.id
WHERE asset.name = %s
    AND partition.window_end > %s GROUP BY partition.id ORDER BY partition.window_end
"""
_TICKS = """
SELECT coalesce(sum(count), 0), coalesce(sum(queued), 0) FROM assets_app_scheduletick
WHERE schedule_id = %s AND at > %s
"""
_UNFINISHED = """
SELECT count(*) FROM assets_app_run AS run JOIN assets_app_asset AS asset ON asset.id = run.asset_id
WHERE asset.name = ANY(%s) AND run.ended_at IS NULL
"""


class Metronome:
    """The assets `tick` and `tock` are due within the block."""

    def __init__(self, crew: Crew, api: Client) -> None:
        self._crew, self._api = crew, api
        self._since: dict[str, datetime] = {}

    def __enter__(self) -> "Metronome":
        for name in ASSETS:
            # In the middle of a second: what is read next is what unpausing wrote.
            time.sleep((1.3 - time.time() % 1) % 1)
            self._api.post(f"/assets/{name}/unpause/")
            self._since[name] = self.handled_until(name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in ASSETS:
            self._api.post(f"/assets/{name}/pause/")
        until(self._rests, "what was due is made")

    def handled_until(self, name: str = ASSETS[0]) -> datetime:
        """Return the last tick that was handled."""
        ((_, handled),) = self._crew.rows(_SCHEDULE, name)
        instant: datetime = handled
        return instant

    def await_ticks(self, number: int, *, seconds: float = 240.0) -> float:
        """Wait until so many seconds more were seen to; how long that took."""
        began, handled = time.monotonic(), self.handled_until()
        until(
            lambda: self.handled_until() >= handled + timedelta(seconds=number),
            f"{number} more ticks",
            seconds=seconds,
        )
        return time.monotonic() - began

    def assert_each_second_once(self) -> int:
        """Require one tick, one run and one version for every second from the beginning to the last
        tick.

        Return the number of seconds.
        """
        seconds = 0
        for name in ASSETS:
            ((schedule, handled),) = self._crew.rows(_SCHEDULE, name)
            since = self._since[name].replace(microsecond=0)
            seconds = round((handled - since).total_seconds())
            assert seconds > 0, name
            rows = self._crew.rows(_MADE, name, since)
            expected = [since + timedelta(seconds=n) for n in range(1, seconds + 1)]
            assert [end for end, *_ in rows] == expected, name
            assert {tuple(rest) for _, *rest in rows} == {("materialized", 1, 1)}, name
            assert self._crew.rows(_TICKS, schedule, since) == [(seconds, seconds)], name
        return seconds

    def _rests(self) -> bool:
        return bool(self._crew.value(_UNFINISHED, list(ASSETS)) == 0)
