"""Schedules that join assets and one time, as `docs/guides/schedules.md` describes the joins.

Each tick is an event, and each window remembers that the window waits for a tick. In such a
schedule, `any` is met by an asset or by the time, `all` by all assets and the time.
"""

from bisect import bisect_right
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from tests.simulation.calendar import ticks
from tests.simulation.chance import Partition

if TYPE_CHECKING:
    from tests.simulation.reference import Reference, State


class JoinedSchedules:
    """The ticks of such schedules in a reference deployment."""

    def __init__(self, reference: "Reference") -> None:
        self.reference = reference
        self.last_tick: dict[str, datetime] = {}

    def tick(self, now: datetime) -> None:
        """Handle the ticks of one moment."""
        for name, declared in self.reference.assets.items():
            schedule = declared.schedule
            if schedule is None or not schedule.joins_time:
                continue
            times = ticks(schedule.rule, declared.zone)
            number = bisect_right(times, now) - 1
            if times[number] != now:
                continue
            if name in self.reference.paused:
                self._drop(name)
            elif now > self.reference.began_at[name]:
                self._make_due(name, times[number - 1], now)

    def _drop(self, name: str) -> None:
        """Forget the windows that waited for a tick that came during a pause."""
        for _, state in self._states(name):
            if state.waits_for_tick:
                state.waits_for_tick, state.due_again = False, state.held_by is not None

    def _make_due(self, name: str, before: datetime, now: datetime) -> None:
        reference, cut = self.reference, self.reference.cut(name)
        kind = reference.assets[name].schedule.kind  # type: ignore[union-attr]
        if not cut.has_time:
            ended = cut.without_time()
        else:
            since = max(before, reference.began_at[name])
            ended = [
                (window.start, segment)
                for window in cut.ended_between(since, now)
                for segment in cut.segments
            ]
        due = set()
        for partition in ended:
            is_materialized = cut.has_time and reference.state(name, partition).version > 0
            if (
                (not is_materialized)
                if kind == "any"
                else reference.is_due_by_assets(name, partition, None)
            ):
                due.add(partition)
        for partition, state in self._states(name):
            if state.waits_for_tick and state.held_by is None:
                state.waits_for_tick = False
                if reference.is_due_by_assets(name, partition, None):
                    due.add(partition)
            elif state.waits_for_tick:
                # The run that holds it may not have read what it waits for.
                state.waits_for_tick, state.due_again, state.ticked_at = False, True, now
        for partition in reference.claim(name, sorted(due, key=repr), "schedule", now):
            state = reference.state(name, partition)
            state.due_again, state.ticked_at = True, now

    def _states(self, name: str) -> list[tuple[Partition, "State"]]:
        identity = self.reference.assets[name].identity
        return [
            (partition, state)
            for (of, cut, partition), state in self.reference.states.items()
            if of == name and cut == identity
        ]

    def written(self, name: str, partitions: Collection[Partition], now: datetime) -> None:
        """Note the windows that wait for the next tick, since all their assets are there."""
        for partition in partitions:
            if partition[0] is not None and self.reference.is_due_by_assets(name, partition, None):
                self.reference.state(name, partition).waits_for_tick = True

    def released(
        self, name: str, requests: Collection[tuple[Partition, datetime | None]], now: datetime
    ) -> None:
        """Look again at the partitions that came due while a run held them, with the tick that
        asked.
        """
        reference = self.reference
        kind = reference.assets[name].schedule.kind  # type: ignore[union-attr]
        due: dict[str, list[Partition]] = {"schedule": [], "upstream": []}
        for partition, ticked_at in requests:
            state = reference.state(name, partition)
            newer = reference.is_due_by_assets(name, partition, None)
            ticked = ticked_at is not None
            if ticked_at is not None and partition[0] is None and state.history:
                ticked = state.history[-1][1] < ticked_at  # when its run began
            if kind == "all":
                if newer and ticked:
                    due["schedule"].append(partition)
                elif newer:
                    self.written(name, [partition], now)
            elif ticked and (partition[0] is None or not state.version):
                due["schedule"].append(partition)
            elif newer:
                due["upstream"].append(partition)
        for trigger, partitions in due.items():
            for partition in reference.claim(name, partitions, trigger, now):
                reference.state(name, partition).due_again = True
