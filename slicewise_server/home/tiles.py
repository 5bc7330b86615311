"""The tiles of the overview: a number each, with a link to the list of the counted rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q
from django.urls import reverse

from assets_app.models import TERMINAL_STATES, Asset, Bundle, Queue, Run, RunState
from assets_app.models.gateways import GatewayState
from assets_app.queries.counts import failed_counts
from assets_app.queries.gateways import GatewayStatus
from assets_app.queries.overdue import overdue_by_asset
from assets_app.queries.stale_counts import stale_counts_of_all
from partitions_app.state_badges import OVERDUE, QUEUED, badge_of
from slicewise.texts import counted


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with a label, and the address of the list; ``tone`` is the class of the look."""

    label: str
    number: str
    url: str
    icon: str
    tone: str = "neutral"
    note: str = ""
    # Since when the oldest counted row waits.
    since: datetime | None = None


# Runs that have waited so long need a person. A backfill may queue runs for days.
LONG_WAIT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RunCount:
    """The number of runs in a state; when the oldest was queued and created; and the number of runs
    that have waited for too long, without runs of backfills.
    """

    number: int = 0
    oldest_queued_at: datetime | None = None
    oldest_created_at: datetime | None = None
    long_waiting: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The unfinished runs by state."""

    by_state: Mapping[str, RunCount]

    def of(self, state: RunState) -> RunCount:
        """Return the count of a state."""
        return self.by_state.get(state.value, RunCount())

    def beside(self, *states: RunState) -> str:
        """Say how many runs are in each of these states: ``runs, 2 dispatched``."""
        numbers = [
            f"{self.of(state).number:,} {state.label.lower()}"
            for state in states
            if self.of(state).number
        ]
        return ", ".join(["runs", *numbers])

    @property
    def waiting_long(self) -> list[tuple[str, int]]:
        """The states of runs that have not begun for too long, with the numbers."""
        states = (RunState.WAITING, RunState.QUEUED)
        counts = [(state.value, self.of(state).long_waiting) for state in states]
        return [(state, number) for state, number in counts if number]


def run_counts(now: datetime) -> RunCounts:
    """Count the unfinished runs by state: one statement."""
    is_long = Q(created_at__lt=now - LONG_WAIT, queue=Queue.SCHEDULED)
    unfinished = Run.objects.exclude(state__in=TERMINAL_STATES).order_by()
    # In the order of the fields of a count.
    rows = unfinished.values_list("state").annotate(
        number=Count("pk"),
        oldest_queued_at=Min("queued_at"),
        oldest_created_at=Min("created_at"),
        long_waiting=Count("pk", filter=is_long),
    )
    counted = {state: RunCount(*fields) for state, *fields in rows}
    by_state = {state.value: counted[state] for state in RunState if state in counted}
    return RunCounts(by_state)


@dataclass(frozen=True, slots=True)
class AssetNumbers:
    """The numbers of declared assets and of paused ones among these."""

    declared: int
    paused: int


def asset_numbers() -> AssetNumbers:
    """Count the declared and the paused assets: one statement."""
    declared = Asset.objects.filter(active=True)
    return AssetNumbers(
        **declared.aggregate(declared=Count("pk"), paused=Count("pk", filter=Q(paused=True)))
    )


@dataclass(frozen=True, slots=True)
class ProblemNumbers:
    """The numbers of failed and of overdue partitions by asset id, which tiles sum up and the list
    of problems names.
    """

    failed: Mapping[int, int]
    overdue: Mapping[int, int]


def problem_numbers(now: datetime) -> ProblemNumbers:
    """Count the failed and the overdue partitions of declared assets."""
    return ProblemNumbers(failed_counts(), overdue_by_asset(now))


def tiles_of(
    runs: RunCounts,
    problems: ProblemNumbers,
    workers: Sequence[GatewayStatus],
    broken: Sequence[Bundle],
    overdue_tick_count: int,
    paused: int,
) -> list[Tile]:
    """Return the tiles, in the order of the page."""
    assets, all_runs = reverse("assets:assets"), reverse("assets:runs")
    failed, stale = problems.failed, stale_counts_of_all()
    errors = sum(_error_count(bundle) for bundle in broken)
    queued = runs.of(RunState.QUEUED)
    stale_number = sum(count.number for count in stale.values())
    is_cut = any(count.is_cut for count in stale.values())
    return [
        _tile("Failed", sum(failed.values()), f"{assets}?show=failed", "alert-triangle", "bad",
              _of_assets(len(failed), "partitions")),
        *_overdue_tiles(assets, sum(problems.overdue.values()), overdue_tick_count),
        Tile("Stale", f"{stale_number:,}{'+' if is_cut else ''}", f"{assets}?show=stale", "rotate",
             "warn" if stale_number else "neutral", _of_assets(len(stale), "partitions")),
        Tile("Queued", f"{queued.number:,}", f"{all_runs}?state=queued", QUEUED.icon,
             "info" if queued.number else "neutral",
             runs.beside(RunState.DISPATCHED), queued.oldest_queued_at),
        *_waiting_tiles(all_runs, runs.of(RunState.WAITING)),
        _tile("Running", runs.of(RunState.RUNNING).number, f"{all_runs}?state=running",
              "loader-2", "info", runs.beside(RunState.PUBLISHING, RunState.CANCELING)),
        _tile("Paused", paused, f"{assets}?show=paused", "player-pause", "warn",
              "asset" if paused == 1 else "assets"),
        _tile("Import errors", errors, reverse("assets:bundles"), "package", "bad", "in bundles"),
        _workers_tile(workers),
    ]  # fmt: skip


def _tile(label: str, number: int, url: str, icon: str, tone: str, note: str) -> Tile:
    return Tile(label, f"{number:,}", url, icon, tone if number else "neutral", note)


def _waiting_tiles(all_runs: str, waiting: RunCount) -> list[Tile]:
    """Return a tile of runs that wait for earlier partitions, if any: the list tells for which."""
    if not waiting.number:
        return []
    look = badge_of(RunState.WAITING)
    return [
        Tile(look.label, f"{waiting.number:,}", f"{all_runs}?state=waiting", look.icon, look.tone,
             "runs, for earlier partitions", waiting.oldest_created_at)
    ]  # fmt: skip


def _overdue_tiles(assets: str, partition_count: int, tick_count: int) -> list[Tile]:
    """Return a tile of overdue partitions and a tile of overdue ticks, of which each leads to a
    list of its own; only the tile of ticks if no partition is overdue.
    """
    partitions = _tile(
        "Overdue", partition_count, f"{assets}?show=overdue", OVERDUE.icon, "bad", "partitions"
    )
    ticks = _tile(
        "Overdue ticks", tick_count, f"{assets}?show=late", "clock", "warn", "not evaluated"
    )
    return [partitions] * (bool(partition_count) or not tick_count) + [ticks] * bool(tick_count)


def _of_assets(number: int, word: str) -> str:
    return f"{word} of {counted(number, 'asset')}" if number else word


def _error_count(bundle: Bundle) -> int:
    version = bundle.current_version
    return max(len(version.import_errors) if version else 0, 1 if bundle.error else 0)


def _workers_tile(workers: Sequence[GatewayStatus]) -> Tile:
    online = [worker for worker in workers if worker.state == GatewayState.WORKING]
    draining = sum(worker.state == GatewayState.DRAINING for worker in workers)
    lost = sum(worker.state == GatewayState.LOST for worker in workers)
    queues = [_slots_text(queue, online) for queue in sorted({one.gateway.queue for one in online})]
    others = [f"{draining:,} draining"] * (draining > 0) + [f"{lost:,} offline"] * (lost > 0)
    slots = f"slots in use: {', '.join(queues)}" if queues else "no slots"
    note = "; ".join([", ".join(["online", *others]), slots])
    tone = "bad" if not online else "warn" if lost else "good"
    return Tile("Workers", f"{len(online):,}", reverse("assets:gateways"), "server", tone, note)


def _slots_text(queue: str, online: Sequence[GatewayStatus]) -> str:
    """Say how many slots of a queue are in use: no run takes a slot of another queue."""
    workers = [worker for worker in online if worker.gateway.queue == queue]
    slots, used = sum(worker.gateway.slots for worker in workers), sum(one.used for one in workers)
    return f"{queue} {used:,} of {slots:,}"
