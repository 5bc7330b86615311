"""Both deployments through the same months, and the differences of their records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tests.simulation.calendar import HALF_HOUR
from tests.simulation.declarations import SEGMENTS, DeclaredAsset, Schedule, declared_assets
from tests.simulation.drawn_actions import Action, actions
from tests.simulation.entries import differences
from tests.simulation.kept_counts import wrong_counts
from tests.simulation.late_assets import changed_spans, changed_windows, late_family
from tests.simulation.more_assets import more_family
from tests.simulation.reference import Reference
from tests.simulation.remaining_work import leftovers
from tests.simulation.servers import Servers

# Both are compared so often: after a difference nothing that follows tells more.
_HALF_HOURS_TO_COMPARISON = 10 * 48
_PHASES = (timedelta(0), timedelta(minutes=10), timedelta(minutes=20))
# Longer than any run lasts or waits, and then longer than any window.
_LAST_RUNS, _LAST_WINDOWS = timedelta(days=12), timedelta(days=45)
_SELDOM = timedelta(hours=12)


@dataclass(frozen=True)
class Plan:
    """The length of a simulation, and the size of its deployment."""

    begin: datetime
    days: int
    # Numbers of families. Each has thirty-three assets, and those with terms of lateness: twelve,
    # or nineteen.
    families: range
    seed: int = 13
    with_rare: bool = False
    # The spans in which beat is down, and no server does anything.
    downtimes: tuple[tuple[datetime, datetime], ...] = ()

    @property
    def end(self) -> datetime:
        """Return the end of the simulation."""
        return self.begin + timedelta(days=self.days)

    def up_again(self, instant: datetime) -> datetime:
        """Return the instant, or the end of the downtime in which it lies."""
        ends = [end for begin, end in self.downtimes if begin <= instant < end]
        return ends[0] if ends else instant


def bundle_versions(plan: Plan) -> list[tuple[datetime, list[DeclaredAsset]]]:
    """Return the declarations of the bundle, each with the instant from which it is in force."""
    first = declared_assets(plan.families, plan.seed)
    for number in plan.families:
        first += late_family(number, with_rare=plan.with_rare)
        first += more_family(number, plan.begin, plan.days)
    second = [
        replace(declared, schedule=Schedule("cron", "0 */6 * * *"))
        if declared.name.startswith("days_")
        else replace(declared, segments=(*SEGMENTS, "east"))
        if declared.name.startswith(("spend_", "regions_", "by_region_"))
        else changed_spans(declared)
        for declared in first
    ]
    third = [
        replace(declared, cadence="@hourly", options={"strategy": "range"})
        if declared.name.startswith("refreshed_")
        else changed_windows(declared)
        for declared in second
        if not declared.name.startswith("newest_")
    ]
    third_of_it = timedelta(days=plan.days // 3, hours=13, minutes=20)
    return [
        (plan.begin, first),
        (plan.begin + third_of_it, second),
        (plan.begin + 2 * third_of_it, third),
    ]


def simulate(
    plan: Plan, servers: Servers, tell: Callable[[str], None] = lambda line: None
) -> tuple["Deployments", list[str]]:
    """Return both deployments after the months of the plan, and all that is different or wrong in
    the product.

    The simulation ends early where the records differ. Else all is quiet at its end.
    """
    versions = bundle_versions(plan)
    servers.clock.set(plan.begin)
    servers.declare(versions[0][1])
    deployments = Deployments(servers, Reference(versions[0][1], plan.begin))
    reference = deployments.reference
    todo = _actions(plan, versions)
    later = dict(versions[1:])
    resumed = {end for _, end in plan.downtimes}
    for number in range((plan.end - plan.begin) // HALF_HOUR):
        if number % 480 == 0:
            tell(f"day {number // 48}: {len(reference.records):,} versions")
        if number % _HALF_HOURS_TO_COMPARISON == 0 and (deviations := deployments.deviations()):
            return deployments, deviations
        for phase in _PHASES:
            now = plan.begin + number * HALF_HOUR + phase
            if now == plan.begin or plan.up_again(now) != now:
                continue
            if now in later:
                deployments.declare(later[now], now)
            current = [
                action for action in todo.get(now, ())
                if action.kind == "retry" or action.asset in reference.assets
            ]  # fmt: skip
            # Ticks and windows end on half hours: else there is something to do only if a run ends
            # or begins again, or somebody acts, or beat is back.
            if not phase or current or now in later or now in resumed or deployments.is_due(now):
                deployments.step(now, current)
    deviations = deployments.deviations()
    if not deviations:
        deployments.settle(plan.end)
        deviations = deployments.deviations_when_quiet()
    return deployments, deviations


def _actions(
    plan: Plan, versions: Sequence[tuple[datetime, list[DeclaredAsset]]]
) -> dict[datetime, list[Action]]:
    """Return all that people and other programs do, by instant: nothing while beat is down.

    People ask for partitions of the definitions in force.
    """
    todo: dict[datetime, list[Action]] = {}
    declared_at = [instant for instant, _ in versions[1:]]
    for (since, assets), until in zip(versions, [*declared_at, plan.end], strict=True):
        for action in actions(assets, plan.begin, plan.end, declared_at):
            done_at = plan.up_again(action.at)
            if since <= done_at < until:
                todo.setdefault(done_at, []).append(action)
    return todo


@dataclass(frozen=True)
class Deployments:
    """The product and the reference, to which the same happens at the same time."""

    servers: Servers
    reference: Reference

    def declare(self, assets: list[DeclaredAsset], now: datetime) -> None:
        """Put definitions in force."""
        self.servers.clock.set(now)
        self.servers.declare(assets)
        self.reference.declare(assets, now)

    def is_due(self, now: datetime) -> bool:
        """Return whether a run ends by then or begins again."""
        return self.servers.is_due(now) or self.reference.is_due(now)

    def step(self, now: datetime, current: Sequence[Action]) -> None:
        """Do everything that happens at one instant."""
        self.servers.step(now, current)
        self.reference.step(now, current)

    def settle(self, now: datetime) -> None:
        """Pause all schedules, and go on until the last run has ended and no window is open."""
        self.step(now, [
            Action(now, "pause", name) for name, declared in self.reference.assets.items()
            if declared.schedule is not None and name not in self.reference.paused
        ])  # fmt: skip
        for number in range(1, _LAST_RUNS // _PHASES[1]):
            later = now + number * _PHASES[1]
            if self.is_due(later) or (later - now) % _SELDOM == timedelta(0):
                self.step(later, [])
        self.step(now + _LAST_WINDOWS, [])

    def deviations(self) -> list[str]:
        """Return all that is different or wrong in the product."""
        return [
            *differences(self.servers.outcome(), self.reference.outcome()),
            *wrong_counts(self.reference),
        ]

    def deviations_when_quiet(self) -> list[str]:
        """Return the same, and what is left over when all is quiet."""
        return self.deviations() + leftovers(self.reference)
