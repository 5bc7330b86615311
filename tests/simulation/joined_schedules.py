"""Schedules that join assets and one time, as `docs/guides/schedules.md` describes the joins.

Each tick is an event, and each window remembers that the window waits for a tick. In such a
schedule, `any` is met by an asset or by the time, `all` by all assets and the time.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tests.simulation.calendar import ticks
from tests.simulation.drawn_actions import Partition

if TYPE_CHECKING:
    from tests.simulation.reference import Reference, State


class JoinedSchedules:
    """The ticks of such schedules in a reference deployment."""

    def __init__(self, reference: "Reference") -> None:
        self.reference = reference
        self.last_tick: dict[str, datetime] = {}

    def tick(self, now: datetime) -> None:
        """Handle the ticks up to one moment."""
        for name, declared in self.reference.assets.items():
            schedule = declared.schedule
            if schedule is None or not schedule.joins_time:
                continue
            times = ticks(schedule.rule, declared.zone)
            began_at = self.reference.began_at[name]
            first = bisect_right(times, max(self.last_tick.get(name, began_at), began_at))
            moments = times[first : bisect_right(times, now)]
            if not moments:
                continue
            self.last_tick[name] = moments[-1]
            if name in self.reference.paused:
                self._drop(name)
            else:
                self._make_due(name, times[first - 1], moments, now)

    def _drop(self, name: str) -> None:
        """Forget the windows that waited for a tick that came during a pause."""
        for _, state in self.reference.states_of(name):
            if state.waits_for_tick:
                state.waits_for_tick, state.due_again = False, state.held_by is not None

    def _make_due(
        self, name: str, before: datetime, moments: Sequence[datetime], now: datetime
    ) -> None:
        """Queue what the ticks of some moments make due, which are handled together."""
        reference, partitioning = self.reference, self.reference.partitioning(name)
        kind = reference.assets[name].schedule.kind  # type: ignore[union-attr]
        if not partitioning.has_time:
            ended = partitioning.without_time()
        else:
            since = max(before, reference.began_at[name])
            ended = [
                (window.start, segment)
                for window in partitioning.ended_between(since, moments[-1])
                for segment in partitioning.segments
            ]
        due: set[Partition] = set()
        examined = set(ended)
        for partition in ended:
            is_materialized = partitioning.has_time and reference.state(name, partition).version > 0
            if (
                (not is_materialized)
                if kind == "any"
                else reference.is_due_by_assets(name, partition, None)
            ):
                due.add(partition)
        for partition, state in self.reference.states_of(name):
            if state.waits_for_tick and state.held_by is None:
                state.waits_for_tick = False
                examined.add(partition)
                if reference.is_due_by_assets(name, partition, None):
                    due.add(partition)
            elif state.waits_for_tick:
                # The run that holds it may not have read what it waits for.
                state.waits_for_tick = False
                self._ask_again(state, moments[-1])
        held = self._claim(name, sorted(due, key=repr), "schedule", now)
        for partition in held:
            self._ask_again(reference.state(name, partition), moments[-1])
        existing = [
            partition for partition in examined - due
            if partition[0] is not None and reference.state(name, partition).version
        ]  # fmt: skip
        reference.ticks.add(
            name, moments, queued=len(due) - len(held), in_flight=len(held), existing=len(existing),
            waiting=len(examined) - len(due) - len(existing),
        )  # fmt: skip

    def _claim(
        self, name: str, partitions: Sequence[Partition], trigger: str, now: datetime
    ) -> list[Partition]:
        """Queue partitions, and note the assets that are missing; return the held partitions."""
        held = self.reference.claim(name, partitions, trigger, now)
        schedule = self.reference.assets[name].schedule
        assert schedule is not None
        for partition in set(partitions) - set(held):
            run = self.reference.state(name, partition).held_by
            assert run is not None
            run.without = {
                asset: "missing"
                for asset in schedule.assets
                if not self.reference.compare(name, partition, asset, None)[0]
            }
            for asset in run.without:
                run.lacked |= self.reference.lacking(name, partition, asset, now)
        return held

    def _ask_again(self, state: "State", tick_at: datetime) -> None:
        """Have a held partition examined after its run, unless the run was queued after the tick:
        then the run reads all that the tick was to count.
        """
        assert state.held_by is not None
        if state.held_by.created_at < tick_at:
            state.due_again, state.ticked_at = True, tick_at

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
            for partition in self._claim(name, partitions, trigger, now):
                reference.state(name, partition).due_again = True
