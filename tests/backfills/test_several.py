"""Backfills of several assets, and of all their upstream assets: the partitions of each asset,
their order, and their end.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Min
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import slicewise
from accounts_app.models import AuditEntry, Grant, User
from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    Bundle,
    Gateway,
    Materialization,
    Run,
)
from backfills_app.models import Backfill, BackfillPartition
from backfills_app.serializers import BackfillSerializer
from backfills_app.services import (
    cancel_backfill,
    check_backfill,
    clone_backfill,
    pause_backfill,
    request_from_text,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.advance.advancing import advance
from backfills_app.services.advance.expansion import expand
from partitions_app.models import PartitionDefinition
from tests.backfills.driven_backfills import (
    drive,
    failing_keys,
    following,
    outcomes,
    refusal_of,
    state_of,
    undone,
)
from tests.created_backfills import create_backfill
from tests.factories import AIRPORTS, DAILY_2013, asset, external, person
from tests.partition_records import counts_agree_with_partitions, record

# Two whole weeks, which begin on Sundays.
FIRST, AFTER = datetime(2024, 3, 24, tzinfo=UTC), datetime(2024, 4, 7, tzinfo=UTC)
ENDS: dict[str, Any] = {"start": "2024-03-24", "end": "2024-04-07"}
HOURLY = slicewise.PartitionByInterval("@hourly", **ENDS)
DAILY = slicewise.PartitionByInterval("@daily", **ENDS)
WEEKLY = slicewise.PartitionByInterval("@weekly", **ENDS)
STORES = slicewise.PartitionBySequence(["ams", "ber", "cph"], name="store")
BY_STORE = slicewise.PartitionByProduct({"day": DAILY, "store": STORES})
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)

DEFINITIONS: dict[str, slicewise.PartitionDefinition | None] = {
    "hours": HOURLY, "days": DAILY, "weeks": WEEKLY, "pairs": DAILY, "by_store": BY_STORE,
    "stores": STORES, "whole": None,
}  # fmt: skip
# Each after what it reads.
READS = {
    "hours": [], "days": ["hours"], "weeks": ["days"], "pairs": ["days"], "by_store": ["days"],
    "stores": ["by_store"], "whole": ["by_store"],
}  # fmt: skip
READ_BY_DAYS = {"hours", "days", "pairs", "by_store"}


class Piece(NamedTuple):
    """One partition, as the reference describes it."""

    start: datetime | None
    end: datetime | None
    segment: str


def universe(name: str) -> list[Piece]:
    """Return all partitions of an asset, one by one."""
    step = {"hours": HOUR, "weeks": WEEK}.get(name, DAY)
    segments = ["ams", "ber", "cph"] if name in ("by_store", "stores") else [""]
    if name in ("stores", "whole"):
        return [Piece(None, None, segment) for segment in segments]
    number = (AFTER - FIRST) // step
    starts = [FIRST + step * place for place in range(number)]
    return [Piece(start, start + step, segment) for start in starts for segment in segments]


def touches(partition: Piece, start: datetime, end: datetime) -> bool:
    """Return whether a partition overlaps a stretch of time; a partition without window always
    does.
    """
    return (
        partition.start is None
        or partition.end is None
        or (partition.start < end and start < partition.end)
    )


def needed(name: str, partition: Piece, upstream: str, since: datetime) -> set[Piece]:
    """Return the partitions of an upstream asset with windows that a partition needs."""
    if name == "pairs":
        assert partition.start is not None
        return {
            candidate
            for candidate in universe(upstream)
            if candidate.start in (partition.start - DAY, partition.start)
        }
    if name == "stores":
        return {
            candidate
            for candidate in universe(upstream)
            if candidate.segment == partition.segment
            and candidate.start is not None
            and candidate.start >= since
        }
    assert partition.start is not None
    assert partition.end is not None
    return {
        candidate
        for candidate in universe(upstream)
        if touches(candidate, partition.start, partition.end)
    }


def expected(
    chosen: Iterable[str], start: datetime, end: datetime, materialized: dict[str, set[Piece]], *,
    upstream: bool,
) -> dict[str, set[Piece]]:  # fmt: skip
    """Work out the partitions of each asset that a backfill is about, one by one."""
    period = {
        name: {candidate for candidate in universe(name) if touches(candidate, start, end)}
        for name in READS
    }
    wanted = {name: set(period[name]) if name in chosen else set() for name in READS}
    if upstream:
        for name in reversed(READS):
            for above in READS[name] if wanted[name] else ():
                if name == "whole":
                    wanted[above] |= period[above]
                    continue
                starts = [
                    upstream_partition.start
                    for upstream_partition in materialized.get(above, ())
                    if upstream_partition.start is not None
                ]
                since = min([start, *starts])
                for partition in wanted[name]:
                    wanted[above] |= needed(name, partition, above, since)
    return {name: some for name, some in wanted.items() if some}


def declare() -> None:
    """Create the assets of the reference in the catalogue."""
    for name, definition in DEFINITIONS.items():
        mapping = slicewise.Offset(-1, 0) if name == "pairs" else None
        following(name, definition, of=dict.fromkeys(READS[name], mapping))


def put_on_record(past: dict[str, tuple[int, int]]) -> dict[str, set[Piece]]:
    """Put a number of partitions from a position on record as materialized; return them."""
    materialized: dict[str, set[Piece]] = {}
    for name, (first, number) in past.items():
        definition = DEFINITIONS[name]
        assert definition is not None
        keys = definition.select(" ".join(f"{dimension}=*" for dimension in definition.space.names))
        place = first % len(keys)
        record(Asset.objects.get(name=name), keys[place : place + number].text)
        materialized[name] = set(universe(name)[place : place + number])
    return materialized


def rows_of(backfill: Backfill, name: str, **filters: Any) -> set[Piece]:
    """Return the partitions of an asset that a backfill has written down."""
    rows = BackfillPartition.objects.filter(
        backfill_asset__backfill=backfill, backfill_asset__asset__name=name, **filters
    )
    return {Piece(*row) for row in rows.values_list("window_start", "window_end", "segment")}


past_runs = st.dictionaries(
    st.sampled_from(["hours", "days", "weeks", "pairs", "by_store", "stores"]),
    st.tuples(st.integers(0, 40), st.integers(1, 12)),
    max_size=3,
)


@pytest.mark.django_db
@settings(
    max_examples=20, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    chosen=st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=4, unique=True),
    first=st.integers(0, 13),
    days=st.integers(1, 4),
    upstream=st.booleans(),
    past=past_runs,
)
def test_each_asset_is_made_for_its_own_partitions(
    chosen: list[str], first: int, days: int, upstream: bool, past: dict[str, tuple[int, int]],
    alice: User,
) -> None:  # fmt: skip
    assume(READ_BY_DAYS & set(chosen) or (upstream and "weeks" not in chosen))
    start = FIRST + DAY * first
    end = min(start + DAY * days, AFTER)
    request: dict[str, Any] = {
        "assets": chosen, "start": f"{start:%Y-%m-%d}", "end": f"{end - DAY:%Y-%m-%d}",
        "upstream": upstream, "existing": "missing",
    }  # fmt: skip
    with undone():
        declare()
        materialized = put_on_record(past)
        wanted = expected(chosen, start, end, materialized, upstream=upstream)
        plan = check_backfill(request_from_text(**request), user=alice)
        backfill = create_backfill(request_from_text(**request), user=alice)
        while expand(backfill.pk):
            pass
        note(f"{ ({name: len(some) for name, some in wanted.items()}) }")
        planned = {row.asset.name: row for row in plan.assets}
        assert set(planned) == set(wanted)
        for name, some in wanted.items():
            existing = some & materialized.get(name, set())
            assert rows_of(backfill, name) == some, name
            assert rows_of(backfill, name, reason="exists") == existing, name
            assert (planned[name].total, planned[name].existing) == (len(some), len(existing)), name
            above = [planned[upstream].layer for upstream in READS[name] if upstream in planned]
            assert planned[name].layer == 1 + max(above, default=0)
            is_chosen = planned[name].role == "chosen"
            assert is_chosen == (name in chosen), name
        places = [list(READS).index(row.asset.name) for row in plan.assets]
        assert all(
            places.index(list(READS).index(above)) < places.index(list(READS).index(name))
            for name in wanted
            for above in READS[name]
            if above in wanted
        )


def test_partitions_are_made_after_those_that_they_need(alice: User, worker: Gateway) -> None:
    declare()
    put_on_record({"hours": (0, 12)})
    request: dict[str, Any] = {
        "assets": "pairs,whole", "start": "2024-03-25", "end": "2024-03-26", "upstream": True,
    }  # fmt: skip
    plan = check_backfill(request_from_text(**request), user=alice)
    names = [[row.asset.name for row in layer] for layer in plan.layers]
    assert names == [["hours"], ["days"], ["pairs", "by_store"], ["whole"]]
    backfill = create_backfill(request_from_text(**request), user=alice)
    drive(worker, most=600)
    assert state_of(backfill) == "succeeded"
    # The day before is needed as well; half of its hours were there.
    assert outcomes(backfill, "hours") == {"succeeded": 60, "exists": 12}
    assert outcomes(backfill, "days") == {"succeeded": 3}
    assert outcomes(backfill, "pairs") == {"succeeded": 2}
    assert outcomes(backfill, "by_store") == {"succeeded": 6}
    assert outcomes(backfill, "whole") == {"succeeded": 1}
    number = {
        (materialization.partition.asset.name, materialization.partition.key): materialization.pk
        for materialization in Materialization.objects.select_related("partition__asset")
    }
    for day in ("2024-03-24", "2024-03-25", "2024-03-26"):
        hours = [
            instant
            for (name, key), instant in number.items()
            if name == "hours" and key[:10] == day
        ]
        assert hours
        assert max(hours) < number["days", day]
    assert number["days", "2024-03-24"] < number["pairs", "2024-03-25"]
    by_store = Materialization.objects.filter(partition__asset__name="by_store")
    whole_asset = Materialization.objects.get(partition__asset__name="whole")
    assert (by_store.aggregate(last=Max("pk"))["last"] or 0) < whole_asset.pk
    # A day is not left behind until all hours are made.
    of_days = Run.objects.filter(asset__name="days").aggregate(first=Min("pk"))["first"]
    of_hours = Run.objects.filter(asset__name="hours").aggregate(last=Max("pk"))["last"]
    assert of_days < of_hours
    assert counts_agree_with_partitions()


def two(**more: Any) -> dict[str, Any]:
    """Return a request for two assets over three days."""
    return {"assets": ["raw", "delays"], "start": "2013-01-01", "end": "2013-01-03", **more}


@pytest.fixture
def pair(db: None) -> None:
    """Create two assets; the second is made from the first."""
    asset("raw", DAILY_2013, group="flights", tags=["nightly"])
    following("delays", DAILY_2013, of={"raw": None})
    Asset.objects.filter(name="delays").update(group="flights", tags=["nightly", "late"])


@pytest.mark.usefixtures("pair")
def test_partitions_with_a_failed_upstream_are_skipped_and_retried(
    alice: User, worker: Gateway
) -> None:
    backfill = create_backfill(request_from_text(**two()), user=alice)
    drive(worker, failing=failing_keys("2013-01-02"))
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "raw") == {"succeeded": 2, "failed": 1}
    assert outcomes(backfill, "delays") == {"succeeded": 2, "upstream_failed": 1}
    retry_failed(backfill, user=alice)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert outcomes(backfill, "delays") == {"succeeded": 3}


@pytest.mark.usefixtures("pair")
def test_it_is_paused_resumed_and_canceled_as_a_whole(alice: User, worker: Gateway) -> None:
    asset("weather", DAILY_2013)
    request = two() | {"assets": ["delays", "weather", "raw"], "max_active_runs": 1}
    backfill = create_backfill(request_from_text(**request), user=alice)
    advance()
    pause_backfill(backfill, user=alice)
    assert not Run.objects.exists()
    resume_backfill(backfill, user=alice)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    second_backfill = create_backfill(request_from_text(**request, existing="all"), user=alice)
    advance()
    cancel_backfill(second_backfill, user=alice)
    assert state_of(second_backfill) == "canceled"
    for name in request["assets"]:
        assert outcomes(second_backfill, name) == {"canceled": 3}


@pytest.mark.usefixtures("pair")
def test_definitions_stay_as_they_were_for_each_asset(alice: User, worker: Gateway) -> None:
    backfill = create_backfill(request_from_text(**two()), user=alice)
    later = slicewise.PartitionByInterval("@daily", start="2013-01-03", end="2014-01-01")
    definition = PartitionDefinition.of(later.to_json())
    Asset.objects.filter(name="raw").update(partition_definition=definition)
    drive(worker)
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "raw") == {"succeeded": 1, "no_such_partition": 2}
    assert outcomes(backfill, "delays") == {"succeeded": 1, "upstream_nonexistent": 2}


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"asset_group": "flights"}, ["raw", "delays"]),
        ({"asset_tag": "nightly"}, ["raw", "delays"]),
        ({"asset_tag": "late"}, ["delays"]),
        ({"assets": "delays, raw"}, ["raw", "delays"]),
        ({"asset": "delays", "upstream": True}, ["raw", "delays"]),
        ({"assets": ["raw"], "downstream": "all"}, ["raw", "delays"]),
    ],
)
def test_assets_are_chosen_by_name_group_or_tag(
    alice: User, chosen: dict[str, Any], names: list[str]
) -> None:
    # A clone of the downstream asset alone needs the upstream data.
    record(Asset.objects.get(name="raw"), "2013-01-01..2013-01-03")
    request = {"start": "2013-01-01", "end": "2013-01-03", **chosen}
    backfill = create_backfill(request_from_text(**request), user=alice)
    assert [scope.asset.name for scope in backfill.assets.all()] == names
    assert {scope.total for scope in backfill.assets.all()} == {3}
    clone = clone_backfill(backfill, {}, user=alice)
    assert [scope.asset.name for scope in clone.assets.all()] == names
    assert clone.chosen_by == backfill.chosen_by
    clone = clone_backfill(backfill, {"start": "2013-01-02", "end": "2013-01-03"}, user=alice)
    assert {scope.total for scope in clone.assets.all()} == {2}


@pytest.mark.usefixtures("pair")
def test_assets_to_which_the_period_does_not_apply_are_left_out_and_named(alice: User) -> None:
    asset("later", slicewise.PartitionByInterval("@daily", start="2020-01-01"), group="flights")
    asset("found", slicewise.PartitionAtRuntime("shop"), group="flights")
    external("prices", DAILY_2013, group="flights")
    asset("months", slicewise.PartitionByInterval("@monthly", start="2013-01-01"), group="flights")
    request = {"asset_group": "flights", "start": "2013-01-30", "end": "2013-02-02"}
    plan = check_backfill(request_from_text(**request), user=alice)
    assert {row.asset.name: row.total for row in plan.assets} == {
        "raw": 4, "delays": 4, "months": 2,
    }  # fmt: skip
    assert sorted(plan.refused) == [
        "found is skipped: no partitions yet; runs discover them.",
        "later is skipped: no partitions in this range.",
        "prices is skipped: prices is written by another program: no function here"
        " materializes it.",
    ]


def test_an_asset_that_begins_later_is_made_from_then_on(alice: User) -> None:
    asset("raw", DAILY_2013)
    asset("later", slicewise.PartitionByInterval("@daily", start="2013-01-05", end="2014-01-01"))
    request = {"assets": ["later", "raw"], "start": "2013-01-01", "end": "2013-01-07"}
    plan = check_backfill(request_from_text(**request), user=alice)
    assert {row.asset.name: row.selection for row in plan.assets} == {
        "later": "2013-01-05..2013-01-07", "raw": "2013-01-01..2013-01-07",
    }  # fmt: skip
    assert plan.start_date == datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.usefixtures("same_day")
def test_an_unfinished_window_of_one_asset_does_not_block_the_other_assets(alice: User) -> None:
    today = datetime.now(UTC).date()
    asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01"))
    asset("months", slicewise.PartitionByInterval("@monthly", start="2020-01-01"))
    request = {"assets": ["events", "months"], "start": "2020-01-01", "end": str(today)}
    plan = check_backfill(request_from_text(**request), user=alice)
    assert [row.not_ended for row in plan.assets] == [1, 1]
    assert plan.assets[0].total == (today - datetime(2020, 1, 1, tzinfo=UTC).date()).days


def test_a_selection_with_segments_holds_for_those_that_have_them(alice: User) -> None:
    declare()
    request = {
        "assets": ["by_store", "stores", "days"],
        "selection": "day=2024-03-25 store=ams,ber",
    }
    plan = check_backfill(request_from_text(**request), user=alice)
    assert {row.asset.name: row.selection for row in plan.assets} == {
        "by_store": "day=2024-03-25 store=ams,ber", "stores": "ams,ber", "days": "2024-03-25",
    }  # fmt: skip


def test_outlets_of_one_function_count_as_one_asset(alice: User, worker: Gateway) -> None:
    following("both", DAILY_2013, of={}, outlets=["one", "two"])
    following("after", DAILY_2013, of={"two": None})
    request = {"assets": ["two", "one", "after"], "start": "2013-01-01", "end": "2013-01-02"}
    backfill = create_backfill(request_from_text(**request), user=alice)
    assert [scope.asset.name for scope in backfill.assets.all()] == ["two", "after"]
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert AssetPartition.objects.filter(asset__name="one", state="materialized").count() == 2


@pytest.mark.usefixtures("pair")
def test_a_downstream_asset_that_another_chosen_asset_reads_comes_between(
    alice: User, worker: Gateway
) -> None:
    following("report", DAILY_2013, of={"delays": slicewise.Offset(-1, 0)})
    request = two(downstream="all") | {"assets": ["report", "raw"]}
    plan = check_backfill(request_from_text(**request), user=alice)
    assert [(row.asset.name, row.role) for row in plan.assets] == [
        ("raw", "chosen"), ("delays", "downstream"), ("report", "chosen"),
    ]  # fmt: skip
    both = check_backfill(request_from_text(**request | {"upstream": True}), user=alice)
    assert [(row.asset.name, row.role) for row in both.assets] == [
        ("raw", "chosen"), ("delays", "upstream"), ("report", "chosen"),
    ]  # fmt: skip


def test_an_asset_upstream_of_one_and_downstream_of_another_is_materialized_for_both(
    alice: User, worker: Gateway
) -> None:
    asset("raw", DAILY_2013)
    following("delays", DAILY_2013, of={"raw": None})
    late = slicewise.PartitionByInterval("@daily", start="2013-01-03", end="2014-01-01")
    following("report", late, of={"delays": None})
    request = {"assets": ["report", "raw"], "start": "2013-01-01", "end": "2013-01-04"}
    both = request_from_text(**request, upstream=True, downstream="all")
    plan = check_backfill(both, user=alice)
    assert {row.asset.name: (row.total, row.to_materialize) for row in plan.assets} == {
        "raw": (4, 4), "delays": (4, 4), "report": (2, 2),
    }  # fmt: skip
    backfill = create_backfill(both, user=alice)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert AssetPartition.objects.filter(state="materialized").count() == 10
    clone = clone_backfill(backfill, {"existing": "all"}, user=alice)
    assert [scope.total for scope in clone.assets.all()] == [4, 4, 2]


def test_runs_of_what_is_upstream_and_follows_as_well_are_cut_as_a_whole(
    alice: User, worker: Gateway
) -> None:
    asset("raw", DAILY_2013)
    following("delays", DAILY_2013, of={"raw": None})
    late = slicewise.PartitionByInterval("@daily", start="2013-01-03", end="2014-01-01")
    following("report", late, of={"delays": None})
    request = {"assets": ["report", "raw"], "start": "2013-01-01", "end": "2013-01-04"}
    both = request_from_text(**request, upstream=True, downstream="all", strategy="4")
    plan = check_backfill(both, user=alice)
    create_backfill(both, user=alice)
    drive(worker)
    assert {row.asset.name: row.runs for row in plan.assets} == {
        name: Run.objects.filter(asset__name=name).count() for name in ("raw", "delays", "report")
    }


def test_partitions_that_need_only_future_partitions_are_refused(alice: User) -> None:
    asset("raw", slicewise.PartitionByInterval("@daily", start="2013-01-01"))
    ahead = datetime.now(UTC) + timedelta(days=30)
    mapping = slicewise.Keys({f"{ahead:%Y-%m-%d}"})
    following("sums", AIRPORTS, of={"raw": mapping})
    request = {"asset": "sums", "start": "2013-01-01", "end": "2013-01-02", "upstream": True}
    assert refusal(alice, **request) == {
        "end": ["No partition with a window can be materialized in this period."]
    }


@pytest.mark.usefixtures("pair")
def test_assets_of_other_programs_are_named_and_not_materialized(alice: User) -> None:
    prices = external("prices", DAILY_2013)
    following("costs", DAILY_2013, of={"raw": None, "prices": None})
    request = two(upstream=True) | {"assets": ["costs"]}
    plan = check_backfill(request_from_text(**request), user=alice)
    assert [row.asset.name for row in plan.assets] == ["raw", "costs"]
    assert plan.refused == ("prices is skipped: another program writes it.",)
    assert prices.producer is None


def refusal(alice: User, **fields: Any) -> dict[str, list[str]]:
    """Return the errors with which a request is refused, at the preview as at the creation."""
    errors = refusal_of(alice, **fields)
    assert not AuditEntry.objects.exists()
    return errors


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"assets": ["raw", "nobody", "none"]}, "assets", "no asset 'nobody', 'none'."),
        ({"assets": [" "]}, "assets", "Name an asset."),
        ({"assets": [3]}, "assets", "no list of names"),
        ({"assets": {"raw": 1}}, "assets", "no list of names"),
        ({"assets": "raw,\0"}, "assets", "There is no asset"),
        ({"assets": None}, "asset", "Name an asset."),
        ({"assets": None, "asset": "\0"}, "asset", "There is no asset"),
        ({"assets": "raw", "asset": "raw"}, "assets", "by one of asset, assets"),
        ({"assets": None, "asset_group": "none"}, "asset_group", "There are: flights."),
        ({"assets": None, "asset_group": "\0"}, "asset_group", "No asset is in group"),
        ({"assets": None, "asset_tag": "none"}, "asset_tag", "There are: late, nightly."),
        ({"assets": None, "asset_group": "flights", "asset_tag": "late"}, "asset_tag", "one of"),
        ({"upstream": "yes"}, "upstream", "neither true nor false"),
        ({"order": "listed"}, "order", "oldest or newest"),
        ({"start": "yesterday"}, "start", "yesterday"),
        ({"start": ""}, "start", "Name a partition"),
        ({"start": "2012-01-01"}, "start", "2012-01-01"),
        ({"selection": "2013-01"}, "selection", "not both"),
        ({"params": {"unknown": 1}}, "params", "Unknown params: unknown."),
        ({"assets": ["raw", "prices"]}, "assets", "prices is written by another program"),
        ({"assets": ["spend", "carriers"]}, "assets", "None of these assets has partitions by"),
        ({"assets": None, "asset": "carriers", "upstream": True}, "asset", "materialize it"),
        ({"downstream": "raw,nobody"}, "downstream", "nobody is not downstream of raw, delays."),
    ],
)
def test_an_impossible_request_is_refused_as_a_whole(
    alice: User, changes: dict[str, Any], field: str, message: str
) -> None:
    external("prices", DAILY_2013)
    asset("spend", AIRPORTS)
    asset("carriers")
    errors = refusal(alice, **two() | changes)
    assert list(errors) == [field]
    assert message in errors[field][0]


@pytest.mark.usefixtures("pair")
def test_assets_that_read_each_other_are_refused(alice: User) -> None:
    following("one", DAILY_2013, of={"raw": None})
    following("two", DAILY_2013, of={"one": slicewise.Offset(-1)})
    producer = Asset.objects.get(name="one").producer
    assert producer is not None
    version = producer.current_version
    assert version is not None
    version.definition["inlets"] = ["raw", "two"]
    version.save()
    AssetDependency.objects.create(
        upstream=Asset.objects.get(name="two"), downstream=Asset.objects.get(name="one"), inlet=True
    )
    errors = refusal(alice, **two() | {"assets": ["one", "two"]})
    assert "these assets depend on each other" in errors["assets"][0]
    errors = refusal(alice, **two() | {"assets": None, "asset": "one", "upstream": True})
    assert "these assets depend on each other" in errors["upstream"][0]
    plan = check_backfill(request_from_text(**two()), user=alice)
    assert [row.asset.name for row in plan.assets] == ["raw", "delays"]


@pytest.mark.usefixtures("pair")
def test_too_much_is_refused_with_the_name_of_the_setting(alice: User, settings: Any) -> None:
    settings.MAX_ASSETS_PER_BACKFILL = 1
    assert "MAX_ASSETS_PER_BACKFILL" in refusal(alice, **two())["assets"][0]
    group = {"assets": None, "asset_group": "flights"}
    assert "MAX_ASSETS_PER_BACKFILL" in refusal(alice, **two() | group)["asset_group"][0]
    upstream = {"assets": None, "asset": "delays", "upstream": True}
    assert "MAX_ASSETS_PER_BACKFILL" in refusal(alice, **two() | upstream)["upstream"][0]
    downstream = {"assets": None, "asset": "raw", "downstream": "all"}
    assert "MAX_ASSETS_PER_BACKFILL" in refusal(alice, **two() | downstream)["downstream"][0]
    settings.MAX_ASSETS_PER_BACKFILL = 10
    settings.MAX_PARTITIONS_PER_BACKFILL = 5
    assert "MAX_PARTITIONS_PER_BACKFILL" in refusal(alice, **two())["end"][0]
    assert "MAX_PARTITIONS_PER_BACKFILL" in refusal(alice, **two() | upstream)["upstream"][0]
    assert "MAX_PARTITIONS_PER_BACKFILL" in refusal(alice, **two() | downstream)["downstream"][0]


@pytest.mark.usefixtures("pair")
def test_each_asset_needs_the_permission(pair: None) -> None:
    ulf = person("ulf")
    Grant.objects.create(person=ulf, asset="delays")
    single = two() | {"assets": None, "asset": "delays"}
    for request in (
        two(),
        single | {"upstream": True},
        single | {"asset": "", "asset_group": "flights"},
    ):
        for act in (check_backfill, create_backfill):
            with pytest.raises(PermissionDenied, match="may not backfill raw"):
                act(request_from_text(**request), user=ulf)
    assert not Backfill.objects.exists()
    Grant.objects.create(person=ulf, asset_group="flights")
    external("prices", DAILY_2013)
    Asset.objects.filter(name="prices").update(tags=["nightly"])
    tagged = two() | {"assets": None, "asset_tag": "nightly"}
    assert len(check_backfill(request_from_text(**tagged), user=ulf).assets) == 2
    backfill = create_backfill(request_from_text(**two()), user=ulf)
    assert pause_backfill(backfill, user=ulf).paused


@pytest.mark.usefixtures("pair")
def test_assets_of_several_bundles_are_made_by_the_newest_code_of_each(
    alice: User, worker: Gateway
) -> None:
    other_bundle = Bundle.objects.create(name="other", path="/elsewhere")
    Asset.objects.filter(name="delays").update(bundle=other_bundle)
    backfill = create_backfill(request_from_text(**two()), user=alice)
    drive(worker)
    assert state_of(backfill) == "succeeded"


@pytest.mark.usefixtures("pair")
def test_params_go_to_the_assets_that_declare_them(alice: User) -> None:
    asset("weather", DAILY_2013, params={"limit": 1})
    asset("prices", DAILY_2013, params={"limit": 2, "city": "Bonn"})
    request = two(params={"limit": 5}) | {"assets": ["weather", "raw", "prices"]}
    backfill = create_backfill(request_from_text(**request), user=alice)
    assert {scope.asset.name: scope.params for scope in backfill.assets.all()} == {
        "weather": {"limit": 5}, "raw": {}, "prices": {"limit": 5, "city": "Bonn"},
    }  # fmt: skip


@pytest.mark.usefixtures("pair")
def test_one_asset_is_made_as_listed_with_what_it_is_made_from(
    alice: User, worker: Gateway
) -> None:
    request: dict[str, Any] = {
        "asset": "delays", "selection": "2013-01-05; 2013-01-01..2013-01-02", "order": "listed",
        "upstream": True, "max_active_runs": 1,
    }  # fmt: skip
    create_backfill(request_from_text(**request), user=alice)
    drive(worker)
    for name in ("raw", "delays"):
        runs = Run.objects.filter(asset__name=name).order_by("pk")
        days = list(runs.values_list("selection", flat=True))
        assert days == ["2013-01-05", "2013-01-01", "2013-01-02"], name


@pytest.mark.parametrize(
    ("chosen", "title"),
    [
        ({"asset": "days"}, "days"),
        ({"asset": "days", "downstream": "all"}, "days"),
        ({"assets": "hours"}, "hours"),
        ({"assets": "weeks,days"}, "weeks and days"),
        ({"assets": "pairs,weeks,days,hours,by_store"}, "pairs, weeks and 3 more"),
        ({"asset_group": "shop"}, "group shop"),
        ({"asset_tag": "nightly"}, "tag nightly"),
    ],
)
def test_a_backfill_has_the_name_by_which_its_assets_were_chosen(
    alice: User, chosen: dict[str, Any], title: str
) -> None:
    declare()
    Asset.objects.update(group="shop", tags=["nightly"])
    request = request_from_text(**chosen, selection="2024-03-25..2024-03-30")
    backfill = create_backfill(request, user=alice)
    assert backfill.title == title
    assert backfill.name.startswith(f"backfill_{title}_2")
    assert backfill.group.label == backfill.name
    assert BackfillSerializer(Backfill.objects.with_code_versions().get()).data["title"] == title


def test_a_long_choice_leaves_the_time_in_the_name(alice: User) -> None:
    declare()
    Asset.objects.update(group="g" * 200)
    request = request_from_text(asset_group="g" * 200, selection="2024-03-25..2024-03-30")
    backfill = create_backfill(request, user=alice)
    assert re.fullmatch(r"backfill_group g+…_\d{8}T\d{6}", backfill.name)
