"""The assets of a simulated deployment: plain facts, and the definition file that declares the
assets.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.simulation.alternatives import Alternative

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata")
SEGMENTS = ("north", "south", "west")


@dataclass(frozen=True)
class Schedule:
    """When an asset is made: by time (`cron`, `every`), by other assets (`any`, `all`), by these
    and a time, which is the `rule` of such a schedule, or by `alternatives` with terms of lateness.
    """

    kind: str
    rule: str = ""
    assets: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    # An asset of whose windows the last one counts that has ended.
    latest: str = ""
    # An asset of which a window needs the windows from one number to another, counted from its own.
    offset: tuple[str, int, int] | None = None
    # The dates from which and until which a schedule by time ticks.
    between: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.alternatives:
            names = dict.fromkeys(
                name for alternative in self.alternatives for name in alternative.assets
            )
            object.__setattr__(self, "assets", tuple(names))

    @property
    def fresh(self) -> tuple[str, ...]:
        """Return the assets that are to be fresh."""
        return tuple(
            dict.fromkeys(
                name for alternative in self.alternatives for name, _ in alternative.fresh
            )
        )

    @property
    def upstream(self) -> tuple[str, ...]:
        """Return all assets that the schedule names."""
        return tuple(dict.fromkeys([*self.assets, *self.fresh]))

    @property
    def joins_time(self) -> bool:
        """Return whether the schedule joins a time and assets."""
        return bool(self.rule and self.assets)


@dataclass(frozen=True)
class DeclaredAsset:
    """The facts that a definition file declares of one asset. Without a cadence the asset is not
    partitioned by time.
    """

    name: str
    cadence: str | None = None
    zone: str = "UTC"
    segments: tuple[str, ...] = ()
    is_runtime: bool = False
    without_weekends: bool = False
    start: str = "2024-06-01"
    schedule: Schedule | None = None
    is_external: bool = False
    # Many of its reports come late or never.
    is_unreliable: bool = False
    # All assets that one function makes, if these are several. The first one has the schedule.
    together: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str | None, str, bool]:
        """Return the cadence and zone, which make two definitions of an asset comparable."""
        return (self.cadence, self.zone if self.cadence else "", self.is_runtime)

    def source(self) -> str:
        """Return the lines of a definition file that declare the asset."""
        partition = f"partition={self._partition()}"
        if self.is_external:
            return f"{self.name} = Asset({self.name!r}, {partition})\n"
        if self.is_made_beside:
            return ""
        terms = [partition, *(f"{name}={value!r}" for name, value in self.options.items())]
        upstream: tuple[str, ...] = ()
        if self.schedule is not None:
            terms.append(f"schedule={_schedule_source(self.schedule)}")
            upstream = self.schedule.upstream
            terms += _mapping_source(self.schedule)
            if self.schedule.between is not None:
                start, end = self.schedule.between
                terms.append(f"start_date={start!r}, end_date={end!r}")
            if (
                not self.cadence
                and self.schedule.rule
                and (self.schedule.kind != "every" or self.schedule.between is not None)
            ):
                terms.append(f"timezone={self.zone!r}")
        return f"{self._head(terms)}({', '.join(upstream)}):\n    pass\n"

    @property
    def is_made_beside(self) -> bool:
        """Return whether the function of another asset makes this one as well."""
        return bool(self.together) and self.name != self.together[0]

    def _head(self, terms: Sequence[str]) -> str:
        """Return the lines of the function up to its name."""
        if not self.together:
            return f"@asset({', '.join(terms)})\ndef {self.name}"
        outlets = "".join(f"{name} = Asset({name!r})\n" for name in self.together)
        listed = f"outlets=[{', '.join(self.together)}]"
        return f"{outlets}@asset.multi({', '.join([listed, *terms])})\ndef make_{self.name}"

    def _partition(self) -> str:
        if self.is_runtime:
            return "PartitionAtRuntime(name='customers')"
        segments = f"PartitionBySequence({list(self.segments)!r}, name='segment')"
        if self.cadence is None:
            return segments if self.segments else "None"
        cadence = repr(self.cadence)
        if self.cadence.startswith("every "):
            cadence = f"timedelta(hours={self.cadence.removeprefix('every ')})"
        excluded = ", exclude='0 0 * * 6,0'" if self.without_weekends else ""
        aligned = "Z" if self.cadence.startswith("every ") else ""
        times = (
            f"PartitionByInterval({cadence}, timezone={self.zone!r},"
            f" start='{self.start}T00:00{aligned}'{excluded}, name='time')"
        )
        if self.segments:
            return f"PartitionByProduct({{'time': {times}, 'segment': {segments}}})"
        return times


def _mapping_source(schedule: Schedule) -> list[str]:
    mappings = [f"{schedule.latest}: Latest()"] if schedule.latest else []
    if schedule.offset is not None:
        name, first, last = schedule.offset
        mappings.append(f"{name}: Offset({first}, {last})")
    return [f"upstream={{{', '.join(mappings)}}}"] if mappings else []


def _schedule_source(schedule: Schedule) -> str:
    if schedule.kind == "every":
        return f"timedelta(hours={schedule.rule})"
    if schedule.kind == "cron":
        return repr(schedule.rule)
    if schedule.alternatives:
        return " | ".join(f"({alternative.source()})" for alternative in schedule.alternatives)
    time = [_term_source(schedule.rule)] if schedule.rule else []
    return (" & " if schedule.kind == "all" else " | ").join([*schedule.assets, *time])


def _term_source(rule: str) -> str:
    hours = rule.removeprefix("every ")
    return f"Cron({rule!r})" if hours == rule else f"Every(timedelta(hours={hours}))"


def definition_file(assets: Sequence[DeclaredAsset]) -> str:
    """Return the text of a definition file with these assets."""
    head = (
        "from datetime import timedelta\n\n"
        "from slicewise import After, Asset, Cron, Every, Fresh, Latest, Offset\n"
        "from slicewise import PartitionAtRuntime\n"
        "from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence\n"
        "from slicewise import asset\n\n"
    )
    return head + "\n\n".join(declared.source() for declared in assets)


def _cron(rule: str) -> Schedule:
    return Schedule("cron", rule)


def _family(number: int, chance: random.Random) -> list[DeclaredAsset]:
    """Return twenty-three assets, one of each kind, with dependencies among the assets."""
    zone = ZONES[number % len(ZONES)]

    def name(kind: str) -> str:
        return f"{kind}_{number:02}"

    def by(kind: str, *kinds: str, time: str = "") -> Schedule:
        return Schedule(kind, time, tuple(name(of) for of in kinds))

    return [
        DeclaredAsset(name("told"), "@daily", zone, is_external=True),
        DeclaredAsset(name("days"), "@daily", zone, schedule=_cron(chance.choice(
            ["@daily", "30 6 * * *", "0 */6 * * *"]))),
        DeclaredAsset(name("quarters"), "every 6", schedule=_cron("@daily"),
                      options={"strategy": "range"}),
        DeclaredAsset(name("whole"), zone=zone, schedule=_cron(chance.choice(
            ["@daily", "0 */6 * * *", "30 2 * * *"]))),
        DeclaredAsset(name("spend"), segments=SEGMENTS, schedule=Schedule("every", "8")),
        DeclaredAsset(name("regions"), "@daily", zone, SEGMENTS, schedule=_cron("@daily")),
        DeclaredAsset(name("refreshed"), "@daily", zone, schedule=_cron("0 5 * * *"),
                      options={"refresh": 2}),
        DeclaredAsset(name("newest"), "@daily", zone, schedule=_cron("@weekly"),
                      options={"pending": "latest"}),
        DeclaredAsset(name("chained"), "@daily", zone, schedule=_cron("@daily"),
                      options={"depends_on_past": True}),
        DeclaredAsset(name("customers"), is_runtime=True, schedule=_cron("0 5 * * *")),
        DeclaredAsset(name("forecast"), is_runtime=True, schedule=by("any", "customers")),
        DeclaredAsset(name("summed"), "@daily", "UTC", schedule=by("any", "quarters")),
        DeclaredAsset(name("both"), "@daily", zone, schedule=by("all", "days", "told")),
        DeclaredAsset(name("either"), "@daily", zone, schedule=by("any", "days", "refreshed")),
        DeclaredAsset(name("report"), schedule=by("any", "days")),
        DeclaredAsset(name("months"), "@monthly", zone, schedule=by("any", "days")),
        DeclaredAsset(name("by_region"), "@daily", zone, SEGMENTS, schedule=by("any", "regions")),
        DeclaredAsset(name("spend_days"), "@daily", zone, SEGMENTS, schedule=by("any", "spend")),
        DeclaredAsset(name("told_or_nine"), "@daily", zone,
                      schedule=by("any", "told", time="0 9 * * *")),
        DeclaredAsset(name("noon_days"), "@daily", zone,
                      schedule=by("all", "days", "told", time="0 12 * * *")),
        DeclaredAsset(name("regions_or_week"), "@daily", zone, SEGMENTS,
                      schedule=by("any", "regions", time="@weekly")),
        DeclaredAsset(name("summary"), zone=zone, schedule=by("all", "days", time="every 8")),
        DeclaredAsset(name("spend_or_day"), zone=zone, segments=SEGMENTS,
                      schedule=by("any", "spend", time="@daily")),
    ]  # fmt: skip


def declared_assets(families: range, seed: int) -> list[DeclaredAsset]:
    """Return the assets that the first version of the bundle declares."""
    chance = random.Random(seed)
    assets = [declared for number in families for declared in _family(number, chance)]
    # Six hours to a run: an hour to a run would take most of the time that a simulation takes.
    hourly = DeclaredAsset(
        "hours",
        "@hourly",
        "America/New_York",
        schedule=_cron("30 */6 * * *"),
        options={"strategy": "range"},
    )
    workdays = DeclaredAsset(
        "workdays", "@daily", "Europe/Berlin", without_weekends=True, schedule=_cron("@daily")
    )
    return [
        *assets,
        hourly,
        DeclaredAsset("hours_by_day", "@daily", "America/New_York",
                      schedule=Schedule("any", assets=("hours",))),
        DeclaredAsset("hourly_days", "@daily", "Europe/Berlin", schedule=_cron("@hourly")),
        workdays,
        DeclaredAsset("work_months", "@monthly", "Europe/Berlin",
                      schedule=Schedule("any", assets=("workdays",))),
    ]  # fmt: skip


def instant_text(moment: datetime) -> str:
    """Return an instant as a selection names it."""
    return f"{moment:%Y-%m-%dT%H:%M}Z"
