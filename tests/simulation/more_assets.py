"""Assets made together, assets that need earlier windows, schedules that begin and end, retries."""

from datetime import datetime, timedelta

from tests.simulation.declarations import ZONES, DeclaredAsset, Schedule
from tests.simulation.drawn_actions import FLAKY, NEGLECTED

# The pause before a second attempt, in seconds; a third attempt follows after twice as long.
_PAUSE = 1800


def more_family(number: int, begin: datetime, days: int) -> list[DeclaredAsset]:
    """Return ten assets beside those of a family that `declarations` declares."""
    zone = ZONES[(number + 2) % len(ZONES)]
    upstream_zone = ZONES[number % len(ZONES)]

    def name(kind: str) -> str:
        return f"{kind}_{number:02}"

    def day(share: float) -> str:
        return f"{begin + timedelta(days=int(share * days)):%Y-%m-%d}"

    def bounded(rule: str, first: float, last: float) -> Schedule:
        kind = "every" if rule.isdigit() else "cron"
        return Schedule(kind, rule, between=(day(first), day(last)))

    six, eight = Schedule("cron", "0 */6 * * *"), Schedule("cron", "30 */8 * * *")
    midnight = Schedule("cron", "@daily")
    both = (name("pair"), name("twin"))
    retries: dict[str, object] = {"retries": 2, "retry_delay": _PAUSE}
    return [
        DeclaredAsset(name("pair"), "@daily", upstream_zone, together=both,
                      schedule=Schedule("any", assets=(name("days"),))),
        DeclaredAsset(name("twin"), "@daily", upstream_zone, together=both),
        DeclaredAsset(name("after_twin"), "@daily", upstream_zone,
                      schedule=Schedule("any", assets=(name("twin"),))),
        DeclaredAsset(name("three_days"), "@daily", upstream_zone,
                      schedule=Schedule("any", assets=(name("days"),),
                                        offset=(name("days"), -2, 0))),
        DeclaredAsset(name("season"), "@daily", zone, schedule=bounded("0 6 * * *", 0.2, 0.7)),
        DeclaredAsset(name("campaign"), zone=zone, schedule=bounded("7", 0.1, 0.8)),
        DeclaredAsset(name(NEGLECTED + "stock"), "@daily", zone, schedule=midnight,
                      options={"depends_on_past": True}),
        DeclaredAsset(name(NEGLECTED + "water"), "@daily", zone, schedule=midnight,
                      options={"depends_on_past": True}),
        DeclaredAsset(name(FLAKY + "days"), "@daily", zone, schedule=six, options=retries),
        DeclaredAsset(name(FLAKY + "whole"), zone=zone, schedule=eight, options=retries),
    ]  # fmt: skip
