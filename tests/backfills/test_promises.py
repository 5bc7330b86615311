"""Previews keep their promise: over random assets, states and options.

``PROMISES=400`` in the environment asks for so many examples; each drives a whole backfill.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run, RunPartition, RunState
from backfills_app.models import Backfill, BackfillPartition
from backfills_app.services import PlannedAsset, check_backfill, request_from_text
from slicewise_server.web.request_errors import InvalidRequest
from tests.backfills.driven_backfills import drive, end, following, never, outcomes, undone
from tests.created_backfills import create_backfill
from tests.execution.conftest import make_gateway
from tests.partition_records import counts_agree_with_partitions

FIRST, AFTER = "2024-03-25", "2024-04-09"
BERLIN = "Europe/Berlin"
DAILY = slicewise.PartitionByInterval("@daily", start=FIRST, end=AFTER)
# The clock goes from 02:00 to 03:00 on the 31st.
HOURLY = slicewise.PartitionByInterval(
    "@hourly", start="2024-03-30T12:00", end="2024-04-01", timezone=BERLIN
)
LOCAL_DAYS = slicewise.PartitionByInterval("@daily", start=FIRST, end=AFTER, timezone=BERLIN)
WORKDAYS = slicewise.PartitionByInterval(
    "@daily", start=FIRST, end=AFTER, exclude=["0 0 * * 6", "0 0 * * 0"]
)
WEEKLY = slicewise.PartitionByInterval("@weekly", start=FIRST, end=AFTER)
STORES = slicewise.PartitionBySequence(["ams", "ber", "cph"])
BY_STORE = slicewise.PartitionByProduct({"day": DAILY, "store": STORES})

ROOTS = {"daily": DAILY, "hourly": HOURLY, "workdays": WORKDAYS, "by_store": BY_STORE}
FOLLOWERS: dict[str, slicewise.PartitionDefinition | None] = {
    **ROOTS, "local": LOCAL_DAYS, "weekly": WEEKLY, "stores": STORES, "whole": None,
}  # fmt: skip
MAPPINGS = {
    "overlap": None,
    "two": slicewise.Offset(-1, 0),
    "latest": slicewise.Latest(),
    "all": slicewise.All(),
}


@dataclass
class World:
    """Some assets, the past of the assets, and a request."""

    root: str
    followers: list[tuple[str, list[int], str]]
    reads_outside: bool
    # Of an asset by number: which part of it, and whether its run succeeds.
    past: list[tuple[int, tuple[int, int], bool]]
    held: tuple[int, int] | None
    held_of: int
    selection: list[tuple[int, int]]
    failing: set[int]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [f"asset_{number}" for number in range(len(self.followers) + 1)]


spans = st.tuples(st.integers(0, 40), st.integers(1, 12))
worlds = st.builds(
    World,
    root=st.sampled_from(sorted(ROOTS)),
    followers=st.lists(
        st.tuples(
            st.sampled_from(sorted(FOLLOWERS)),
            st.lists(st.integers(0, 3), min_size=1, max_size=2),
            st.sampled_from(sorted(MAPPINGS)),
        ),
        max_size=3,
    ),
    reads_outside=st.booleans(),
    past=st.lists(st.tuples(st.integers(0, 4), spans, st.booleans()), max_size=4),
    held=st.none() | spans,
    held_of=st.integers(0, 3),
    selection=st.lists(spans, min_size=1, max_size=3),
    failing=st.just(set()) | st.sets(st.integers(0, 15), max_size=3),
    options=st.fixed_dictionaries(
        {
            "existing": st.sampled_from(["missing", "missing_and_failed", "stale", "all"]),
            "strategy": st.sampled_from(["partition", "range", 2, 3]),
            "order": st.sampled_from(["oldest", "newest", "listed"]),
            "allow_holes": st.booleans(),
            "downstream": st.sampled_from(["all", "all", "none"]),
            "max_active_runs": st.sampled_from([2, 50]),
        }
    ),
)


def always(_attempt: Attempt) -> bool:
    """Let each run fail."""
    return True


class Stage:
    """The world on the real database, and the workers of the world."""

    def __init__(self, world: World, user: User, scheduled: Gateway, worker: Gateway) -> None:
        self.world, self.user = world, user
        self.scheduled, self.worker = scheduled, worker
        following("outside", DAILY, of={})
        root: Any = ROOTS[world.root]
        following("asset_0", root, of={"outside": None} if world.reads_outside else {})
        for number, (kind, reads, mapping) in enumerate(world.followers, 1):
            definition = FOLLOWERS[kind]
            of = {
                f"asset_{up}": self._mapping(mapping, definition, up)
                for up in {min(number_read, number - 1) for number_read in reads}
            }
            following(f"asset_{number}", definition, of=of)

    def _mapping(
        self, name: str, definition: slicewise.PartitionDefinition | None, upstream: int
    ) -> slicewise.PartitionMapping | None:
        """Return a mapping that counts windows where both sides have windows."""
        above = Asset.objects.get(name=f"asset_{upstream}").definition
        sides = [side.time_dimension if side else None for side in (definition, above)]
        return MAPPINGS[name] if all(sides) else None

    def live_through(self) -> None:
        """Play the past of the world."""
        names = [*self.world.names, "outside"]
        for number, span, succeeds in self.world.past:
            if run := self._run(names[number % len(names)], span):
                end(run, self.scheduled, failing=never if succeeds else always)

    def hold(self) -> int | None:
        """Start a run of one of the assets, which stays under way."""
        names = self.world.names
        held_selection = self.world.held
        return (
            None
            if held_selection is None
            else self._run(names[self.world.held_of % len(names)], held_selection)
        )

    def _run(self, name: str, span: tuple[int, int]) -> int | None:
        """Create a run for some partitions of an asset, and dispatch it."""
        asset = Asset.objects.select_related("partition_definition").get(name=name)
        selection = self.selected(asset, [span])
        group = materialize(
            MaterializeRequest(asset=asset, selection=selection, strategy="range"), user=self.user
        )
        group.runs.update(state=RunState.DISPATCHED)
        return group.runs.get().pk

    def selected(self, asset: Asset, spans: list[tuple[int, int]]) -> str:
        """Return a number of keys from a position on; positions count round."""
        if asset.definition is None:
            return ""
        names = asset.definition.space.names
        keys = asset.definition.select(" ".join(f"{name}=*" for name in names))
        terms = []
        for first, number in spans:
            place_in_keys = first % len(keys)
            terms.append(keys[place_in_keys : place_in_keys + number].text)
        return "; ".join(terms)

    def request(self) -> dict[str, Any]:
        asset = Asset.objects.select_related("partition_definition").get(name="asset_0")
        return {"selection": self.selected(asset, self.world.selection), **self.world.options}

    def fails(self, attempt: Attempt) -> bool:
        """Return whether a run has a partition whose number is among the failing numbers."""
        rows = BackfillPartition.objects.filter(run=attempt.run.pk)
        return rows.filter(position__in=self.world.failing).exists()


def check_runs(backfill: Backfill, planned: PlannedAsset, *, is_exact: bool) -> None:
    """Require that no run has more partitions than allowed, or reaches over a hole without
    permission.
    """
    runs = Run.objects.filter(group=backfill.group, asset=planned.asset)
    if is_exact:
        assert runs.count() == planned.runs, planned.asset.name
    if not isinstance(planned.strategy, int):
        return
    for run in runs:
        assert run.partition_count <= planned.strategy
        rows = BackfillPartition.objects.filter(run=run, reason="").order_by("position")
        places = list(rows.values_list("position", "rank"))
        assert len({rank for _, rank in places}) <= 1
        if not backfill.allow_holes and places:
            assert places[-1][0] - places[0][0] == len(places) - 1


@pytest.mark.django_db
@settings(
    max_examples=int(os.environ.get("PROMISES", "12")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds)
def test_the_preview_equals_the_result(world: World, alice: User) -> None:
    with undone():
        play(world, alice)


@pytest.mark.django_db
@settings(
    max_examples=int(os.environ.get("PROMISES", "8")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    world=worlds,
    chosen=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    days=st.tuples(st.integers(25, 31), st.integers(0, 2)),
    upstream=st.booleans(),
)
def test_the_preview_of_several_assets_equals_the_result(
    world: World, chosen: list[int], days: tuple[int, int], upstream: bool, alice: User
) -> None:
    first, number = days
    names = list(dict.fromkeys(world.names[place % len(world.names)] for place in chosen))
    request = {
        "asset": "", "assets": names, "selection": "", "start": f"2024-03-{first}",
        "end": f"2024-03-{min(first + number, 31)}", "upstream": upstream,
    }  # fmt: skip
    if world.options["order"] == "listed":
        request["order"] = "newest"
    with undone():
        play(world, alice, **request)


def play(world: World, alice: User, **instead: Any) -> None:
    """Preview a backfill, create it, bring it to its end, and compare both."""
    stage = Stage(world, alice, make_gateway("scheduled", 100), make_gateway("backfill", 100))
    stage.live_through()
    holder = stage.hold()
    request = {"asset": "asset_0", **stage.request(), **instead}
    note(f"request {request}")
    try:
        plan = check_backfill(request_from_text(**request), user=alice)
    except InvalidRequest:
        # None of several can read the days; of one asset all can be made.
        assert instead
        reject()
    backfill = create_backfill(request_from_text(**request), user=alice)
    drive(stage.worker, failing=stage.fails, except_run=holder)
    if holder is not None:
        end(holder, stage.scheduled)
        drive(stage.worker, failing=stage.fails)
    backfill.refresh_from_db()
    assert backfill.ended
    for planned in plan.assets:
        note(f"{planned.asset.name}: {planned}")
        compare(backfill, planned, world, is_helped=helps(holder, backfill))
    assert counts_agree_with_partitions()


def helps(holder: int | None, backfill: Backfill) -> bool:
    """Return whether a run that the backfill waits for also makes partitions outside the backfill.

    The preview announces that partitions downstream of these miss their upstream; after the wait
    the upstream is there.
    """
    wanted = BackfillPartition.objects.filter(backfill_asset__backfill=backfill)
    if holder is None or not wanted.filter(reason="in_flight").exists():
        return False
    making = RunPartition.objects.filter(run=holder).values_list(
        "partition__asset", "partition__key"
    )
    return bool(set(making) - set(wanted.values_list("backfill_asset__asset", "key")))


def compare(backfill: Backfill, planned: PlannedAsset, world: World, *, is_helped: bool) -> None:
    """Compare the preview of an asset with the result."""
    ended = outcomes(backfill, planned.asset.name)
    note(f"{planned.asset.name} ended: {ended}")
    attempted = ended.get("succeeded", 0) + ended.get("failed", 0) + ended.get("upstream_failed", 0)
    exists = ended.get("exists", 0)
    assert sum(ended.values()) == planned.total
    assert ended.get("in_flight", 0) == planned.in_flight
    missing = ended.get("upstream_missing", 0) + ended.get("upstream_nonexistent", 0)
    announced = (planned.to_materialize, planned.existing, planned.upstream_missing)
    is_helped = is_helped and planned.upstream_missing > 0
    if is_helped:
        assert (attempted + missing, exists) == (
            planned.to_materialize + planned.upstream_missing,
            announced[1],
        )
        assert attempted >= planned.to_materialize
    else:
        assert (attempted, exists, missing) == announced
    if not world.failing and not is_helped:
        assert ended.get("succeeded", 0) == planned.to_materialize
    first = planned.asset.name == "asset_0"
    is_cut = isinstance(planned.strategy, int)
    check_runs(
        backfill, planned, is_exact=not world.failing and not is_helped and (first or not is_cut)
    )
