"""A scheduler as simple as the documents allow: dictionaries, lists, and a look at everything.

The reference tells which versions are made, by which trigger, and when. The rules are the rules of
`docs/guides/schedules.md`. The reference shares no code with the product.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.simulation.calendar import ticks
from tests.simulation.chance import Action, Partition, draw, fate_of
from tests.simulation.declarations import DeclaredAsset
from tests.simulation.joined import JoinedSchedules
from tests.simulation.partitions import Cut, needed, needing

# How long a run waits for the partition before its own.
PATIENCE = timedelta(hours=168)
# What a run holds that looks for partitions.
DISCOVERY: Partition = (None, "(discovery)")
# How often a person makes again what has failed, of ten mornings.
RETRIED = 0.5
Inputs = dict[tuple[str, Partition], int]


@dataclass(eq=False)
class SimulatedRun:
    """A run that is waiting, queued or under way."""

    number: int
    asset: str
    # How the asset was cut when the run was asked for: it may be declared otherwise by now, or no
    # more.
    identity: object
    partitions: list[Partition]
    trigger: str
    created_at: datetime
    waits_for: list[Partition] = field(default_factory=list)
    begun_at: datetime | None = None
    ends_at: datetime | None = None
    fails: bool = False
    customers: tuple[str, ...] = ()
    inputs: Inputs = field(default_factory=dict)


@dataclass
class State:
    """One partition of one asset."""

    version: int = 0
    state: str = "missing"
    skip_reason: str = ""
    held_by: SimulatedRun | None = None
    due_again: bool = False
    due_at: datetime | None = None
    # By a schedule that joins a time: it waits for the next tick, or a tick came while it was held.
    waits_for_tick: bool = False
    ticked_at: datetime | None = None
    # The version that each input had when the run of the present version began.
    inputs: Inputs = field(default_factory=dict)
    # When versions were made, when their runs began, and by which trigger.
    history: list[tuple[datetime, datetime, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Written:
    """A version that was just made upstream."""

    asset: str
    partition: Partition
    # When the version before was made, by whatever makes others due; None for the first one.
    before: datetime | None
    at: datetime


# What is compared with the product's records: asset, partition, version, trigger, when made.
Record = tuple[str, Partition, int, str, datetime]


class Reference:
    """A deployment as the documents describe it."""

    def __init__(self, assets: Iterable[DeclaredAsset], now: datetime) -> None:
        self.assets: dict[str, DeclaredAsset] = {}
        self.handled_until: dict[str, datetime] = {}
        self.began_at: dict[str, datetime] = {}
        self.joined = JoinedSchedules(self)
        self.paused: set[str] = set()
        self.customers: set[str] = set()
        self.states: dict[tuple[str, object, Partition], State] = {}
        self.waiting: list[SimulatedRun] = []
        self.queued: list[SimulatedRun] = []
        self.running: list[SimulatedRun] = []
        self.written: list[Written] = []
        self.records: list[Record] = []
        self._ordinals: dict[tuple[str, tuple[Partition, ...]], int] = {}
        self._run_count = 0
        self.declare(assets, now)

    def declare(self, assets: Iterable[DeclaredAsset], now: datetime) -> None:
        """Put definitions in force: new schedules begin now, changed ones go on."""
        former, self.assets = self.assets, {declared.name: declared for declared in assets}
        for name, declared in self.assets.items():
            before = former.get(name)
            if declared.schedule is not None and (before is None or before.schedule is None):
                self.handled_until[name] = self.began_at[name] = now

    def step(self, now: datetime, actions: Sequence[Action]) -> None:
        """Do everything that happens at one instant, in the order in which servers look."""
        self._end_runs(now)
        for action in actions:
            self._act(action, now)
        self._tick(now)
        self.joined.tick(now)
        self._judge(now)
        self._look_again(now)
        self._wake(now)
        self._begin(now)

    def is_due(self, now: datetime) -> bool:
        """Return whether a run ends by then."""
        return any(run.ends_at is not None and run.ends_at <= now for run in self.running)

    def state(self, asset: str, partition: Partition) -> State:
        """Return the state on record of a partition."""
        return self._state_of(asset, self.assets[asset].identity, partition)

    def _state_of(self, asset: str, identity: object, partition: Partition) -> State:
        return self.states.setdefault((asset, identity, partition), State())

    def cut(self, asset: str) -> Cut:
        """Return how an asset is cut at present."""
        return Cut(self.assets[asset], self.customers)

    # ------------------------------------------------------------ runs
    def claim(
        self, asset: str, partitions: Iterable[Partition], trigger: str, now: datetime
    ) -> list[Partition]:
        """Queue runs of the partitions that no run holds; return the others."""
        free: list[Partition] = []
        held_partitions: list[Partition] = []
        for partition in partitions:
            (held_partitions if self.state(asset, partition).held_by else free).append(partition)
        is_range = self.assets[asset].options.get("strategy") == "range"
        batches = [free] if is_range and free else [[partition] for partition in free]
        runs = []
        for batch in batches:
            self._run_count += 1
            identity = self.assets[asset].identity
            run = SimulatedRun(self._run_count, asset, identity, batch, trigger, now)
            runs.append(run)
            for partition in batch:
                self.state(asset, partition).held_by = run
        for run in runs:
            run.waits_for = self._waits_for(run)
            (self.waiting if run.waits_for else self.queued).append(run)
        return held_partitions

    def _waits_for(self, run: SimulatedRun) -> list[Partition]:
        """Return the partitions before a run's own, where the asset depends on its past."""
        if not self.assets[run.asset].options.get("depends_on_past") or run.trigger == "manual":
            return []
        earlier_partitions: list[Partition] = []
        for start, segment in run.partitions:
            assert start is not None
            before = self.cut(run.asset).last_before(start, 1)
            if before and self._has_past(run.asset, start, segment):
                earlier = (before[0].start, segment)
                if not self._is_there(run.asset, earlier):
                    earlier_partitions.append(earlier)
        return earlier_partitions

    def _has_past(self, asset: str, start: datetime, segment: str) -> bool:
        identity = self.assets[asset].identity
        return any(
            name == asset and cut == identity and of == segment
            and materialized_at is not None and materialized_at < start
            and (state.version or state.held_by or state.state != "missing")
            for (name, cut, (materialized_at, of)), state in self.states.items()
        )  # fmt: skip

    def _is_there(self, asset: str, partition: Partition) -> bool:
        state = self.state(asset, partition)
        return state.state == "materialized" and state.held_by is None

    def _wake(self, now: datetime) -> None:
        still = []
        for run in self.waiting:
            earlier = [self.state(run.asset, partition) for partition in run.waits_for]
            if all(self._is_there(run.asset, partition) for partition in run.waits_for):
                self.queued.append(run)
            elif run.created_at < now - PATIENCE:
                failed = any(
                    state.held_by is None
                    and (state.state == "failed" or state.skip_reason == "upstream_failed")
                    for state in earlier
                )
                for partition in run.partitions:
                    state = self.state(run.asset, partition)
                    state.held_by, state.state = None, "skipped"
                    state.skip_reason = "upstream_failed" if failed else "wait_timeout"
            else:
                still.append(run)
        self.waiting = still

    def _begin(self, now: datetime) -> None:
        for run in self.queued:
            key = (run.asset, tuple(run.partitions))
            ordinal = self._ordinals[key] = self._ordinals.get(key, 0) + 1
            fate = fate_of(run.asset, run.partitions, ordinal, now)
            run.ends_at, run.fails, run.customers = fate.ends_at, fate.fails, fate.customers
            run.begun_at, run.inputs = now, self._inputs(run)
            self.running.append(run)
        self.queued = []

    def _inputs(self, run: SimulatedRun) -> Inputs:
        versions: Inputs = {}
        down = self.cut(run.asset)
        for name in self._upstream(run.asset):
            up = self.cut(name)
            identity = self.assets[name].identity
            if down.is_whole or run.partitions == [DISCOVERY]:
                wanted = [key for of, cut, key in self.states if of == name and cut == identity]
            else:
                wanted = [
                    key
                    for run_partition in run.partitions
                    for key in needed(down, run_partition, up)[0]
                ]
            for partition in wanted:
                if version := self.state(name, partition).version:
                    versions[name, partition] = version
        return versions

    def _upstream(self, asset: str) -> tuple[str, ...]:
        schedule = self.assets[asset].schedule
        return () if schedule is None else schedule.assets

    def _end_runs(self, now: datetime) -> None:
        over = [run for run in self.running if run.ends_at is not None and run.ends_at <= now]
        self.running = [run for run in self.running if run not in over]
        for run in sorted(over, key=lambda run: (run.ends_at, run.number)):
            for partition in run.partitions:
                state = self._state_of(run.asset, run.identity, partition)
                state.held_by = None
                if run.fails:
                    state.state = "failed"
            if run.fails:
                continue
            if run.partitions == [DISCOVERY]:
                self._record_discovery(run, now)
            else:
                for partition in run.partitions:
                    self._record(run.asset, partition, now, run)

    def _record_discovery(self, run: SimulatedRun, now: datetime) -> None:
        discovery = self._state_of(run.asset, run.identity, DISCOVERY)
        discovery.version, discovery.state = discovery.version + 1, "materialized"
        self.customers |= set(run.customers)
        for customer in run.customers:
            if self._state_of(run.asset, run.identity, (None, customer)).held_by is None:
                self._record(run.asset, (None, customer), now, run)

    def _record(
        self, asset: str, partition: Partition, now: datetime, run: SimulatedRun | None
    ) -> None:
        """Record a version, of a run or of a report."""
        identity = self.assets[asset].identity if run is None else run.identity
        state = self._state_of(asset, identity, partition)
        before = state.history[-1][0] if state.history else None
        trigger = "" if run is None else run.trigger
        begun_at = now if run is None or run.begun_at is None else run.begun_at
        state.version, state.state = state.version + 1, "materialized"
        state.inputs = {} if run is None else run.inputs
        state.history.append((now, begun_at, trigger))
        self.records.append((asset, partition, state.version, trigger, now))
        self.written.append(Written(asset, partition, before, now))

    # ------------------------------------------------------------ people and other programs
    def _act(self, action: Action, now: datetime) -> None:
        if action.kind == "pause":
            self.paused.add(action.asset)
        elif action.kind == "unpause":
            self.paused.discard(action.asset)
            self.handled_until[action.asset] = self.began_at[action.asset] = now
        elif action.kind == "report":
            self._record(action.asset, action.partition, now, None)
        elif action.kind == "make":
            self._make(action.asset, action.partition, now)
        elif action.kind == "retry":
            for name, partition in self.failed(now):
                self._make(name, partition, now)

    def _make(self, asset: str, partition: Partition, now: datetime) -> None:
        if not self.state(asset, partition).held_by:
            self.claim(asset, [partition], "manual", now)

    def failed(self, now: datetime) -> list[tuple[str, Partition]]:
        """Return the failed partitions that a person makes again on this day."""
        failures = [
            (name, partition)
            for (name, identity, partition), state in self.states.items()
            if state.state == "failed" and state.held_by is None and partition != DISCOVERY
            and name in self.assets and identity == self.assets[name].identity
            and draw("retry", name, partition, now) < RETRIED
        ]  # fmt: skip
        return sorted(failures, key=repr)

    # ------------------------------------------------------------ schedules by time
    def _tick(self, now: datetime) -> None:
        for name, declared in self.assets.items():
            schedule = declared.schedule
            if schedule is None or schedule.kind not in ("cron", "every") or name in self.paused:
                continue
            rule = schedule.rule if schedule.kind == "cron" else f"every {schedule.rule}"
            times = ticks(rule, declared.zone)
            last = bisect_right(times, now) - 1
            if last >= 0 and times[last] > self.handled_until[name]:
                self._make_due(name, times[last], now)
                self.handled_until[name] = times[last]

    def _make_due(self, name: str, tick_at: datetime, now: datetime) -> None:
        declared, cut, since = self.assets[name], self.cut(name), self.handled_until[name]
        if declared.is_runtime:
            wanted = [DISCOVERY]
        elif cut.has_time:
            wanted = self._ended(name, since, tick_at)
        else:
            # Left out: what something other than the ticks of this schedule began and made since.
            wanted = [
                partition for partition in cut.without_time()
                if not any(begun_at > since and trigger != "schedule"
                           for _, begun_at, trigger in self.state(name, partition).history)
            ]  # fmt: skip
        for partition in self.claim(name, wanted, "schedule", now):
            self.state(name, partition).due_again = True

    def _ended(self, name: str, since: datetime, tick_at: datetime) -> list[Partition]:
        options, cut = self.assets[name].options, self.cut(name)
        ended = cut.ended_between(since, tick_at)
        again = []
        if ended and (count := int(str(options.get("refresh", 0)))):
            again = cut.last_before(ended[0].start, count)
        if options.get("pending") == "latest":
            for window in ended[:-1]:
                for segment in cut.segments:
                    state = self.state(name, (window.start, segment))
                    if state.state == "missing" and not state.held_by:
                        state.state = "skipped"
            ended = ended[-1:]
        return [
            *((window.start, segment) for window in again for segment in cut.segments
              if self.state(name, (window.start, segment)).version),
            *((window.start, segment) for window in ended for segment in cut.segments
              if not self.state(name, (window.start, segment)).version),
        ]  # fmt: skip

    # ------------------------------------------------------------ schedules by assets
    def _judge(self, now: datetime) -> None:
        written, self.written = self.written, []
        for name, declared in self.assets.items():
            schedule = declared.schedule
            if schedule is None or not schedule.assets or name in self.paused:
                continue
            touched = {
                partition
                for entry in written
                if entry.asset in schedule.assets
                for partition in self._touched(name, entry)
            }
            self._queue_due(name, touched, written, now)

    def _touched(self, name: str, entry: Written) -> list[Partition]:
        down, up = self.cut(name), self.cut(entry.asset)
        if up.has_time or not down.has_time:
            return needing(up, entry.partition, down)
        # Without time, what is made is a tick: windows that ended since it was made before.
        since = self.handled_until[name]
        after = max(entry.before or since, since)
        segments = [entry.partition[1]] if entry.partition[1] else down.segments
        return [
            (window.start, segment)
            for window in down.ended_between(after, entry.at)
            for segment in segments
        ]

    def _queue_due(
        self,
        name: str,
        touched: Iterable[Partition],
        written: Sequence[Written] | None,
        now: datetime,
    ) -> None:
        due = []
        schedule = self.assets[name].schedule
        is_put_off = schedule is not None and schedule.joins_time and schedule.kind == "all"
        for partition in sorted(touched, key=repr):
            end = self._end(name, partition)
            if end is not None and end > now:
                state = self.state(name, partition)
                state.due_again, state.due_at = True, end
            elif is_put_off:
                self.joined.written(name, [partition], now)
            elif self.is_due_by_assets(name, partition, written):
                due.append(partition)
        for partition in self.claim(name, due, "upstream", now):
            self.state(name, partition).due_again = True

    def _end(self, name: str, partition: Partition) -> datetime | None:
        window = None if partition[0] is None else self.cut(name).window(partition[0])
        return None if window is None else window.end

    def is_due_by_assets(
        self, name: str, partition: Partition, written: Sequence[Written] | None
    ) -> bool:
        """Return whether the assets of a schedule make a partition due."""
        schedule = self.assets[name].schedule
        assert schedule is not None
        verdicts = [self._compare(name, partition, of, written) for of in schedule.assets]
        if schedule.kind == "all":
            return all(ready for ready, _ in verdicts) and any(newer for _, newer in verdicts)
        return any(ready and newer for ready, newer in verdicts)

    def _compare(
        self, name: str, partition: Partition, upstream: str, written: Sequence[Written] | None
    ) -> tuple[bool, bool]:
        """Return whether all needed partitions of an upstream asset are there, and whether one of
        them is newer than the partition's inputs.
        """
        own_state, down, up = self.state(name, partition), self.cut(name), self.cut(upstream)
        if down.is_whole and not up.is_whole:
            identity = self.assets[upstream].identity
            wanted = [
                key for (of, cut, key), state in self.states.items()
                if of == upstream and cut == identity and state.version
            ]  # fmt: skip
            ready = bool(wanted)
            if written is not None:
                wanted = [entry.partition for entry in written if entry.asset == upstream]
        else:
            wanted, exist = needed(down, partition, up)
            ready = exist and all(self.state(upstream, key).version for key in wanted)
        newer = any(
            self.state(upstream, key).version > own_state.inputs.get((upstream, key), 0)
            for key in wanted
        )
        return ready, newer

    # ------------------------------------------------------------ what came due while it was held
    def _look_again(self, now: datetime) -> None:
        released: dict[str, list[Partition]] = {}
        ticked: dict[tuple[str, Partition], datetime | None] = {}
        for (name, identity, partition), state in self.states.items():
            is_over = state.due_at is None or state.due_at <= now
            if state.due_again and is_over and state.held_by is None:
                state.due_again, state.due_at = False, None
                ticked[name, partition], state.ticked_at = state.ticked_at, None
                if name in self.assets and self.assets[name].identity == identity:
                    released.setdefault(name, []).append(partition)
        for name, partitions in released.items():
            schedule = self.assets[name].schedule
            if schedule is None or name in self.paused:
                continue
            if schedule.joins_time:
                requests = [(partition, ticked[name, partition]) for partition in partitions]
                self.joined.released(name, requests, now)
            elif schedule.assets:
                self._queue_due(name, partitions, None, now)
            else:
                again = [
                    partition for partition in partitions
                    if partition[0] is None or self.state(name, partition).state != "materialized"
                ]  # fmt: skip
                self.claim(name, again, "schedule", now)
