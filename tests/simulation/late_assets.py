"""Assets with terms of lateness, and upstream assets that come late or never."""

from dataclasses import replace

from tests.simulation.alternatives import Alternative
from tests.simulation.declarations import ZONES, DeclaredAsset, Schedule

# The prefix of the names of all assets whose schedules have such terms.
PREFIX = "late_"
# Of the weekly model: it is too old for two days of a week.
_YOUNG = 120
# Simulated in a year alone, since a month is part of each run of all tests. No asset of a month is
# downstream of these.
_RARE = ("and", "or_remade", "two", "noon", "fresh_noon", "fresh_alone")


def late_family(number: int, *, with_rare: bool) -> list[DeclaredAsset]:
    """Return four upstream assets, and the assets that wait for them: fifteen, or the eight kinds
    that matter most.
    """
    rare = {f"{PREFIX}{kind}_{number:02}" for kind in _RARE} | {f"remade_next_{number:02}"}
    return [
        declared for declared in _whole_family(number) if with_rare or declared.name not in rare
    ]


def _whole_family(number: int) -> list[DeclaredAsset]:
    # Not UTC in the first family: clocks change.
    zone = ZONES[(number + 1) % len(ZONES)]

    def name(kind: str) -> str:
        return f"{kind}_{number:02}"

    def late(kind: str, *alternatives: Alternative, latest: str = "") -> DeclaredAsset:
        schedule = Schedule("alternatives", alternatives=alternatives, latest=latest)
        return DeclaredAsset(name(f"{PREFIX}{kind}"), "@daily", zone, schedule=schedule)

    promised, seldom, supply = (name(kind) for kind in ("promised", "seldom", "supply"))
    fresh_model = ((name("model"), _YOUNG),)
    return [
        DeclaredAsset(promised, "@daily", zone, is_external=True),
        DeclaredAsset(seldom, "@daily", zone, is_external=True, is_unreliable=True),
        DeclaredAsset(supply, "@daily", zone, schedule=Schedule("cron", "30 2 * * *")),
        DeclaredAsset(name("model"), zone=zone, schedule=Schedule("cron", "@weekly")),
        late("alone", Alternative(after=6)),
        late("or", Alternative((promised,)), Alternative(after=3)),
        late("and", Alternative((promised,), after=6)),
        late("and_changed", Alternative((supply,), after=15)),
        late("tolerant", Alternative((supply, seldom)), Alternative((supply,), after=6)),
        late("remade", Alternative((promised, seldom)),
             Alternative((promised,), after=6, remake=True)),
        late("or_remade", Alternative((seldom,)), Alternative(after=4, remake=True)),
        late("two", Alternative((promised,), after=6), Alternative((seldom,), after=3)),
        late("noon", Alternative(after=20, cron="0 12 * * *")),
        late("fresh", Alternative((promised,), fresh=fresh_model)),
        late("fresh_noon", Alternative(fresh=fresh_model, cron="0 12 * * *")),
        late("fresh_alone", Alternative(after=6, fresh=fresh_model)),
        late("fresh_or", Alternative((promised,), fresh=fresh_model),
             Alternative((promised,), after=8, remake=True)),
        late("fresh_days", Alternative((promised,), fresh=((supply, 20),)),
             Alternative((promised,), after=8), latest=supply),
        DeclaredAsset(name("remade_next"), "@daily", zone,
                      schedule=Schedule("any", assets=(name(f"{PREFIX}remade"),))),
    ]  # fmt: skip


def changed_spans(declared: DeclaredAsset) -> DeclaredAsset:
    """Return the asset as the second version of the bundle declares it."""
    if declared.name.startswith(f"{PREFIX}and_changed_"):
        assert declared.schedule is not None
        (alternative,) = declared.schedule.alternatives
        return replace(
            declared,
            schedule=Schedule("alternatives", alternatives=(replace(alternative, after=6),)),
        )
    if declared.name.startswith(f"{PREFIX}or_remade_"):
        assert declared.schedule is not None
        alternatives = tuple(
            replace(alternative, remake=False) for alternative in declared.schedule.alternatives
        )
        return replace(declared, schedule=Schedule("alternatives", alternatives=alternatives))
    return declared


def changed_windows(declared: DeclaredAsset) -> DeclaredAsset:
    """Return the asset as the third version of the bundle declares it."""
    if declared.name.startswith(f"{PREFIX}or_") and "remade" not in declared.name:
        return replace(declared, cadence="every 6", zone="UTC")
    return declared
