"""A scheduler as simple as the documents allow: dictionaries, lists, and a look at everything.

The reference tells which versions are made, by which trigger, and when. The rules are the rules of
`docs/guides/schedules.md`. The reference shares no code with the product.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.simulation.calendar import Window, bounded_ticks, ticks
from tests.simulation.declarations import DeclaredAsset, Schedule
from tests.simulation.drawn_actions import Action, Partition, fate_of, is_made_again
from tests.simulation.entries import InputEntry, Outcome, PartitionEntry, Record, Request
from tests.simulation.joined_schedules import JoinedSchedules
from tests.simulation.late_schedules import LateSchedules
from tests.simulation.partitions import Partitioning, needed, needing
from tests.simulation.tick_rows import TickRows

# How long a run waits for the partition before its own.
PATIENCE = timedelta(hours=168)
# The pause before a retry doubles up to so much.
_LONGEST_DELAY = timedelta(hours=1)
# What a run holds that looks for partitions.
DISCOVERY: Partition = (None, "(discovery)")
# Upstream asset, how the asset was partitioned, and partition; with the version.
Inputs = dict[tuple[str, object, Partition], int]


@dataclass(eq=False)
class SimulatedRun:
    """A run that is waiting, queued or under way."""

    number: int
    asset: str
    # How the asset was partitioned when the run was requested: it may be declared otherwise by now,
    # or no more.
    identity: object
    partitions: list[Partition]
    trigger: str
    created_at: datetime
    # The assets that the run makes, and the options of their function.
    outlets: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    waits_for: list[Partition] = field(default_factory=list)
    begun_at: datetime | None = None
    ends_at: datetime | None = None
    fails: bool = False
    attempts: int = 0
    # When the next attempt begins, after a failure.
    not_before: datetime | None = None
    outcome: str = "pending"
    # The partitions that a run has found.
    found: list[Partition] = field(default_factory=list)
    customers: tuple[str, ...] = ()
    inputs: Inputs = field(default_factory=dict)
    # What was late when a schedule with terms of lateness queued the run: missing or old, and the
    # effect when it comes.
    without: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    # The needed partitions that were missing then.
    lacked: set[tuple[str, Partition]] = field(default_factory=set)


@dataclass
class State:
    """One partition of one asset."""

    version: int = 0
    state: str = "missing"
    skip_reason: str = ""
    held_by: SimulatedRun | None = None
    due_again: bool = False
    due_at: datetime | None = None
    # By a schedule that joins a time: it waits for the next tick, or a tick came while it was held,
    # at that time or, with terms of lateness, after that time.
    waits_for_tick: bool = False
    ticked_at: datetime | None = None
    # It waits until an asset that is to be fresh is written.
    waits_for_fresh: bool = False
    # What was late for the present version, and the effect when it comes.
    late: dict[str, str] = field(default_factory=dict)
    lacked: set[tuple[str, Partition]] = field(default_factory=set)
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


class Reference:
    """A deployment as the documents describe it."""

    def __init__(self, assets: Iterable[DeclaredAsset], now: datetime) -> None:
        self.assets: dict[str, DeclaredAsset] = {}
        self.handled_until: dict[str, datetime] = {}
        self.began_at: dict[str, datetime] = {}
        self.joined = JoinedSchedules(self)
        self.late = LateSchedules(self)
        self.runs: list[SimulatedRun] = []
        self.paused: set[str] = set()
        self.customers: set[str] = set()
        self.states: dict[tuple[str, object, Partition], State] = {}
        # The same states by asset, so that a look at one asset costs no more over a year.
        self._states_by_asset: dict[tuple[str, object], dict[Partition, State]] = {}
        self.waiting: list[SimulatedRun] = []
        self.queued: list[SimulatedRun] = []
        self.running: list[SimulatedRun] = []
        self.written: list[Written] = []
        self.records: list[Record] = []
        self.ticks = TickRows()
        # When servers looked before the present step.
        self.looked_at = now
        self._read: dict[tuple[str, Partition, int], Inputs] = {}
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
        self.late.tick(now)
        self._evaluate(now)
        self._look_again(now)
        self._wake(now)
        self._begin(now)
        self.looked_at = now

    def outcome(self) -> Outcome:
        """Return the record of the deployment."""
        return Outcome(
            versions=self.records,
            requests=self._requests(),
            partitions=self._partitions(),
            inputs=self._input_entries(),
            ticks=self.ticks.entries(),
        )

    def _requests(self) -> list[Request]:
        return [
            (
                *(name, partition, request_text(run.without), run.trigger, run.created_at),
                f"{run.outcome}, {run.attempts} attempts",
            )
            for run in self.runs
            for name in run.outlets
            for partition in (*run.partitions, *run.found)
        ]

    def _partitions(self) -> list[PartitionEntry]:
        return [
            (
                *(name, repr(identity), partition, state.state),
                state.skip_reason if state.state == "skipped" else "",
                *(state.version, state.held_by.trigger if state.held_by else ""),
            )
            for (name, identity, partition), state in self.states.items()
            if state.state != "missing" or state.held_by
        ]

    def _input_entries(self) -> list[InputEntry]:
        return [
            (*made, name, partition, version)
            for made, inputs in self._read.items()
            for (name, _, partition), version in inputs.items()
        ]

    def state_counts(self) -> dict[tuple[str, str], int]:
        """Return numbers of partitions under present definitions, by asset and settled state: a
        partition that a run holds again counts only if it is materialized.
        """
        return Counter(
            (name, state.state)
            for name, state in self._states_under_current_definition()
            if state.state == "materialized" or (state.state != "missing" and not state.held_by)
        )

    def held_counts(self) -> dict[str, int]:
        """Return the numbers of partitions that runs hold, by asset."""
        return Counter(
            name for name, state in self._states_under_current_definition() if state.held_by
        )

    def stale_counts(self) -> dict[str, int]:
        """Return the numbers of stale partitions under present definitions, by asset."""
        return Counter(
            name
            for name, state in self._states_under_current_definition()
            if state.state == "materialized" and not state.held_by and self._is_stale(name, state)
        )

    def _is_stale(self, name: str, state: State) -> bool:
        """Return whether an input is newer than the version that was read, or has come since."""
        upstream = self._upstream(name)
        is_newer = any(
            self._state_of(*key).version > version
            for key, version in state.inputs.items()
            if key[0] in upstream
        )
        return is_newer or any(
            self.state(asset, partition).version
            and (asset, self.assets[asset].identity, partition) not in state.inputs
            for asset, partition in state.lacked
            if asset in upstream
        )

    def lacking(
        self, name: str, partition: Partition, upstream: str, now: datetime
    ) -> set[tuple[str, Partition]]:
        """Return the missing ones of the upstream partitions that a partition needs."""
        return {
            (upstream, key)
            for key in self.wanted(name, partition, upstream, now)[0]
            if not self.state(upstream, key).version
        }

    def wanted(
        self, name: str, partition: Partition, upstream: str, now: datetime
    ) -> tuple[list[Partition], bool]:
        """Return the partitions of an upstream asset that a partition needs, and whether all of
        these exist.
        """
        wanted, exist = needed(self.partitioning(name), partition, self.partitioning(upstream))
        if self._schedule_of(name).latest == upstream:
            wanted = [
                (window.start, "") for window in self.partitioning(upstream).last_before(now, 1)
            ]
        return wanted, exist

    def waiting_for_fresh(self) -> set[tuple[str, Partition]]:
        """Return the partitions that wait until an asset that is to be fresh is written."""
        return {
            (name, partition)
            for (name, _, partition), state in self.states.items()
            if state.waits_for_fresh and name in self.assets and self._schedule_of(name).fresh
        }

    def states_of(self, name: str) -> list[tuple[Partition, State]]:
        """Return the states of an asset's partitions under the present definition."""
        return list(self._present_states(name).items())

    def _present_states(self, name: str) -> dict[Partition, State]:
        return self._states_by_asset.get((name, self.assets[name].identity), {})

    def _states_under_current_definition(self) -> Iterator[tuple[str, State]]:
        for (name, identity, partition), state in self.states.items():
            declared = self.assets.get(name)
            if declared is not None and declared.identity == identity and partition != DISCOVERY:
                yield name, state

    def is_due(self, now: datetime) -> bool:
        """Return whether a run ends by then, or is tried again."""
        moments = [run.ends_at for run in self.running] + [run.not_before for run in self.queued]
        return any(moment is not None and moment <= now for moment in moments)

    def state(self, asset: str, partition: Partition) -> State:
        """Return the state on record of a partition."""
        return self._state_of(asset, self.assets[asset].identity, partition)

    def _state_of(self, asset: str, identity: object, partition: Partition) -> State:
        key = (asset, identity, partition)
        if key not in self.states:
            of_asset = self._states_by_asset.setdefault((asset, identity), {})
            self.states[key] = of_asset[partition] = State()
        return self.states[key]

    def partitioning(self, asset: str) -> Partitioning:
        """Return how an asset is partitioned at present."""
        return Partitioning(self.assets[asset], self.customers)

    # ------------------------------------------------------------ runs
    def claim(
        self, asset: str, partitions: Iterable[Partition], trigger: str, now: datetime
    ) -> list[Partition]:
        """Queue runs of the partitions that no run holds; return the others."""
        free: list[Partition] = []
        held_partitions: list[Partition] = []
        outlets = self.assets[asset].together or (asset,)
        for partition in partitions:
            is_held = any(self.state(name, partition).held_by for name in outlets)
            (held_partitions if is_held else free).append(partition)
        is_range = self.assets[asset].options.get("strategy") == "range"
        batches = [free] if is_range and free else [[partition] for partition in free]
        runs = []
        for batch in batches:
            self._run_count += 1
            identity = self.assets[asset].identity
            run = SimulatedRun(
                self._run_count, asset, identity, batch, trigger, now,
                outlets=outlets, options=self.assets[outlets[0]].options,
            )  # fmt: skip
            runs.append(run)
            for partition in batch:
                for name in outlets:
                    self.state(name, partition).held_by = run
        self.runs += runs
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
            before = self.partitioning(run.asset).last_before(start, 1)
            if before and self._has_past(run.asset, start, segment):
                earlier = (before[0].start, segment)
                if not self._is_materialized(run.asset, earlier):
                    earlier_partitions.append(earlier)
        return earlier_partitions

    def _has_past(self, asset: str, start: datetime, segment: str) -> bool:
        return any(
            of == segment and materialized_at is not None and materialized_at < start
            and (state.version or state.held_by or state.state != "missing")
            for (materialized_at, of), state in self._present_states(asset).items()
        )  # fmt: skip

    def _is_materialized(self, asset: str, partition: Partition) -> bool:
        state = self.state(asset, partition)
        return state.state == "materialized" and state.held_by is None

    def _wake(self, now: datetime) -> None:
        still = []
        for run in self.waiting:
            earlier = [self.state(run.asset, partition) for partition in run.waits_for]
            if all(self._is_materialized(run.asset, partition) for partition in run.waits_for):
                self.queued.append(run)
            elif run.created_at < now - PATIENCE:
                failed = any(
                    state.held_by is None
                    and (state.state == "failed" or _is_skipped_after_failure(state))
                    for state in earlier
                )
                run.outcome = "skipped"
                for partition in run.partitions:
                    state = self.state(run.asset, partition)
                    state.held_by = None
                    # A skip is the state of a partition of which nothing else is known.
                    if state.state in ("missing", "skipped"):
                        state.state = "skipped"
                        state.skip_reason = "upstream_failed" if failed else "wait_timeout"
            else:
                still.append(run)
        self.waiting = still

    def _begin(self, now: datetime) -> None:
        later = [run for run in self.queued if run.not_before and run.not_before > now]
        for run in self.queued:
            if run in later:
                continue
            key = (run.asset, tuple(run.partitions))
            ordinal = self._ordinals[key] = self._ordinals.get(key, 0) + 1
            fate = fate_of(run.asset, run.partitions, ordinal, now)
            run.ends_at, run.fails, run.customers = fate.ends_at, fate.fails, fate.customers
            run.begun_at, run.inputs, run.not_before = now, self._inputs(run, now), None
            run.attempts += 1
            self.running.append(run)
        self.queued = later

    def _inputs(self, run: SimulatedRun, now: datetime) -> Inputs:
        versions: Inputs = {}
        down = self.partitioning(run.asset)
        for name in self._upstream(run.asset):
            identity = self.assets[name].identity
            if down.is_whole or run.partitions == [DISCOVERY]:
                wanted = [key for key, _ in self.states_of(name)]
            else:
                wanted = [
                    key
                    for run_partition in run.partitions
                    for key in self.wanted(run.asset, run_partition, name, now)[0]
                ]
            for partition in wanted:
                if version := self.state(name, partition).version:
                    versions[name, identity, partition] = version
        return versions

    def _schedule_of(self, asset: str) -> Schedule:
        """Return the schedule of the function that makes an asset."""
        together = self.assets[asset].together
        return self.assets[together[0] if together else asset].schedule or Schedule("")

    def _upstream(self, asset: str) -> tuple[str, ...]:
        return self._schedule_of(asset).upstream

    def _end_runs(self, now: datetime) -> None:
        over = [run for run in self.running if run.ends_at is not None and run.ends_at <= now]
        self.running = [run for run in self.running if run not in over]
        for run in sorted(over, key=lambda run: (run.ends_at, run.number)):
            if run.fails and run.attempts <= int(str(run.options.get("retries", 0))):
                pause = timedelta(seconds=float(str(run.options["retry_delay"])))
                run.not_before = now + min(pause * 2 ** (run.attempts - 1), _LONGEST_DELAY)
                run.ends_at = None
                self.queued.append(run)
                continue
            run.outcome = "failed" if run.fails else "succeeded"
            for name in run.outlets:
                self._settle(run, name, now)

    def _settle(self, run: SimulatedRun, name: str, now: datetime) -> None:
        """Release the partitions of one asset that a run has made, or has failed to make."""
        for partition in run.partitions:
            state = self._state_of(name, run.identity, partition)
            state.held_by = None
            if run.fails:
                state.state = "failed"
        if run.fails:
            return
        if run.partitions == [DISCOVERY]:
            self._record_discovery(run, now)
        else:
            for partition in run.partitions:
                self._record(name, partition, now, run)

    def _record_discovery(self, run: SimulatedRun, now: datetime) -> None:
        discovery = self._state_of(run.asset, run.identity, DISCOVERY)
        discovery.version, discovery.state = discovery.version + 1, "materialized"
        self.customers |= set(run.customers)
        for customer in run.customers:
            if self._state_of(run.asset, run.identity, (None, customer)).held_by is None:
                run.found.append((None, customer))
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
        state.late = {} if run is None else run.late
        state.lacked = set() if run is None else run.lacked
        state.history.append((now, begun_at, trigger))
        if self._forgets_inputs(asset):
            self._read.pop((asset, partition, state.version - 1), None)
        self._read[asset, partition, state.version] = state.inputs
        self.records.append((asset, partition, state.version, trigger, now))
        self.written.append(Written(asset, partition, before, now))

    def _forgets_inputs(self, asset: str) -> bool:
        """Return whether only the inputs of the present version are kept."""
        return asset in self.assets and self.partitioning(asset).is_whole

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
            and is_made_again(name, partition, now)
        ]  # fmt: skip
        return sorted(failures, key=repr)

    # ------------------------------------------------------------ schedules by time
    def _tick(self, now: datetime) -> None:
        for name, declared in self.assets.items():
            schedule = declared.schedule
            if schedule is None or schedule.kind not in ("cron", "every") or name in self.paused:
                continue
            rule = schedule.rule if schedule.kind == "cron" else f"every {schedule.rule}"
            times: Sequence[datetime] = ticks(rule, declared.zone)
            if schedule.between is not None:
                times = bounded_ticks(rule, declared.zone, *schedule.between)
            first = bisect_right(times, self.handled_until[name])
            if moments := times[first : bisect_right(times, now)]:
                self._make_due(name, moments, now)
                self.handled_until[name] = moments[-1]

    def _make_due(self, name: str, moments: Sequence[datetime], now: datetime) -> None:
        declared, partitioning = self.assets[name], self.partitioning(name)
        since = self.handled_until[name]
        existing, superseded = 0, 0
        if declared.is_runtime:
            wanted = [DISCOVERY]
        elif partitioning.has_time:
            wanted, existing, superseded = self._ended(name, since, moments[-1])
        else:
            # Left out: what something other than the ticks of this schedule began and made since,
            # unless a tick that was handled late has made it once more.
            wanted = [
                partition for partition in partitioning.without_time()
                if not any(begun_at > since and trigger != "schedule"
                           for _, begun_at, trigger in self.state(name, partition).history[-1:])
            ]  # fmt: skip
            existing = len(partitioning.segments) - len(wanted)
        held = self.claim(name, wanted, "schedule", now)
        for partition in held:
            self.state(name, partition).due_again = True
        self.ticks.add(
            name, moments, queued=len(wanted) - len(held), existing=existing,
            in_flight=len(held), superseded=superseded,
        )  # fmt: skip

    def _ended(
        self, name: str, since: datetime, tick_at: datetime
    ) -> tuple[list[Partition], int, int]:
        """Return the partitions that a tick makes due, and the numbers of partitions that are
        materialized already and that are superseded.
        """
        options, partitioning = self.assets[name].options, self.partitioning(name)
        ended = partitioning.ended_between(since, tick_at)
        again: list[Window] = []
        superseded: list[Window] = []
        if ended and (count := int(str(options.get("refresh", 0)))):
            again = partitioning.last_before(ended[0].start, count)
        if options.get("pending") == "latest":
            ended, superseded = ended[-1:], ended[:-1]
            for window in superseded:
                for segment in partitioning.segments:
                    state = self.state(name, (window.start, segment))
                    if state.state == "missing" and not state.held_by:
                        state.state = "skipped"
        due = [(window.start, segment) for window in ended for segment in partitioning.segments]
        missing = [partition for partition in due if not self.state(name, partition).version]
        refreshed = [
            (window.start, segment) for window in again for segment in partitioning.segments
            if self.state(name, (window.start, segment)).version
        ]  # fmt: skip
        skipped = len(superseded) * len(partitioning.segments)
        return [*refreshed, *missing], len(due) - len(missing), skipped

    # ------------------------------------------------------------ schedules by assets
    def _evaluate(self, now: datetime) -> None:
        written, self.written = self.written, []
        self.late.fresh_again({entry.asset for entry in written}, now)
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
        down, up = self.partitioning(name), self.partitioning(entry.asset)
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
            elif schedule is not None and schedule.alternatives:
                self.late.written(name, [partition], now)
            elif is_put_off:
                self.joined.written(name, [partition], now)
            elif self.is_due_by_assets(name, partition, written):
                due.append(partition)
        for partition in self.claim(name, due, "upstream", now):
            self.state(name, partition).due_again = True

    def _end(self, name: str, partition: Partition) -> datetime | None:
        window = None if partition[0] is None else self.partitioning(name).window(partition[0])
        return None if window is None else window.end

    def is_due_by_assets(
        self, name: str, partition: Partition, written: Sequence[Written] | None
    ) -> bool:
        """Return whether the assets of a schedule make a partition due."""
        schedule = self.assets[name].schedule
        assert schedule is not None
        comparisons = [self.compare(name, partition, of, written) for of in schedule.assets]
        if schedule.kind == "all":
            return all(ready for ready, _ in comparisons) and any(newer for _, newer in comparisons)
        return any(ready and newer for ready, newer in comparisons)

    def compare(
        self, name: str, partition: Partition, upstream: str, written: Sequence[Written] | None
    ) -> tuple[bool, bool]:
        """Return whether all needed partitions of an upstream asset are there, and whether one of
        them is newer than the partition's inputs.
        """
        own_state = self.state(name, partition)
        down, up = self.partitioning(name), self.partitioning(upstream)
        if down.is_whole and not up.is_whole:
            wanted = [key for key, state in self._present_states(upstream).items() if state.version]
            ready = bool(wanted)
            if written is not None:
                wanted = [entry.partition for entry in written if entry.asset == upstream]
        else:
            wanted, exist = needed(down, partition, up)
            ready = exist and all(self.state(upstream, key).version for key in wanted)
        identity = self.assets[upstream].identity
        newer = any(
            self.state(upstream, key).version > own_state.inputs.get((upstream, identity, key), 0)
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
            requests = [(partition, ticked[name, partition]) for partition in partitions]
            if schedule.joins_time:
                self.joined.released(name, requests, now)
            elif schedule.alternatives:
                self.late.released(name, requests, now)
            elif schedule.assets:
                self._queue_due(name, partitions, None, now)
            else:
                again = [
                    partition for partition in partitions
                    if partition[0] is None or self.state(name, partition).state != "materialized"
                ]  # fmt: skip
                self.claim(name, again, "schedule", now)


def _is_skipped_after_failure(state: State) -> bool:
    return state.state == "skipped" and state.skip_reason == "upstream_failed"


def request_text(without: Mapping[str, str]) -> str:
    """Return the late inputs of a run in words."""
    return ", ".join(f"{name} {reason}" for name, reason in sorted(without.items()))
