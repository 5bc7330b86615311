"""Both deployments through the same months, and the differences of their records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tests.simulation.calendar import HALF_HOUR
from tests.simulation.chance import Action, actions
from tests.simulation.declarations import SEGMENTS, DeclaredAsset, Schedule, declared_assets
from tests.simulation.reference import Record, Reference
from tests.simulation.servers import Servers, records

# Both are compared so often: after a difference nothing that follows tells more.
_HALF_HOURS_TO_COMPARISON = 30 * 48
_PHASES = (timedelta(0), timedelta(minutes=10), timedelta(minutes=20))


@dataclass(frozen=True)
class Plan:
    """The length of a simulation, and the size of its deployment."""

    begin: datetime
    days: int
    # Twenty-three assets each.
    families: int
    seed: int = 13

    @property
    def end(self) -> datetime:
        """Return the end of the simulation."""
        return self.begin + timedelta(days=self.days)


def bundle_versions(plan: Plan) -> list[tuple[datetime, list[DeclaredAsset]]]:
    """Return the declarations of the bundle, each with the instant from which it is in force."""
    first = declared_assets(plan.families, plan.seed)
    second = [
        replace(declared, schedule=Schedule("cron", "0 */6 * * *"))
        if declared.name.startswith("days_")
        else replace(declared, segments=(*SEGMENTS, "east"))
        if declared.name.startswith(("spend_", "regions_", "by_region_"))
        else declared
        for declared in first
    ]
    third = [
        replace(declared, cadence="@hourly", options={"strategy": "range"})
        if declared.name.startswith("refreshed_")
        else declared
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
) -> tuple[list[Record], list[Record]]:
    """Return the records of the product and of the reference after the same months.

    The simulation ends early where the records differ.
    """
    versions = bundle_versions(plan)
    servers.clock.set(plan.begin)
    servers.declare(versions[0][1])
    reference = Reference(versions[0][1], plan.begin)
    todo: dict[datetime, list[Action]] = {}
    for action in actions(
        versions[0][1], plan.begin, plan.end, [instant for instant, _ in versions[1:]]
    ):
        todo.setdefault(action.at, []).append(action)
    later = dict(versions[1:])
    for number in range((plan.end - plan.begin) // HALF_HOUR):
        if number % 480 == 0:
            tell(f"day {number // 48}: {len(reference.records):,} versions")
        if number % _HALF_HOURS_TO_COMPARISON == 0 and differences(records(), reference.records):
            break
        for phase in _PHASES:
            now = plan.begin + number * HALF_HOUR + phase
            if now == plan.begin:
                continue
            if now in later:
                servers.clock.set(now)
                servers.declare(later[now])
                reference.declare(later[now], now)
            current = [
                action for action in todo.get(now, ())
                if action.kind == "retry" or action.asset in reference.assets
            ]  # fmt: skip
            # Ticks and windows end on half hours: else there is something to do only if a run ends
            # or somebody acts.
            if not phase or current or now in later or servers.is_due(now) or reference.is_due(now):
                servers.step(now, current)
                reference.step(now, current)
    return records(), reference.records


def differences(product: Sequence[Record], reference: Sequence[Record]) -> list[str]:
    """Return the entries that only one of the records has, the earliest first."""
    only_product, only_reference = set(product) - set(reference), set(reference) - set(product)
    lines = [(row[4], f"only the product: {_line(row)}") for row in only_product]
    lines += [(row[4], f"only the reference: {_line(row)}") for row in only_reference]
    return [line for _, line in sorted(lines)]


def _line(record: Record) -> str:
    asset, (start, segment), version, trigger, made_at = record
    window = "" if start is None else f"{start:%Y-%m-%dT%H:%M}Z"
    return (
        f"{asset} {window} {segment} v{version} by {trigger or 'report'} at {made_at:%m-%d %H:%M}"
    )
