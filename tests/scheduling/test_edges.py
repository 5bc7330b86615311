"""The partitions that one asset needs of another: arithmetic alone, without a database."""

from datetime import UTC, datetime
from typing import Any

import pytest

import slicewise
from assets_app.scheduling.expressions import Match, News, Tick, matches
from partitions_app.edges import Edge, mapping_of
from slicewise.declaring import evaluate_schedule

DAILY = slicewise.PartitionByInterval("@daily", start="2024-01-01", end="2024-02-01")
HOURLY = slicewise.PartitionByInterval("@hourly", start="2024-01-01", end="2024-02-01")
SHOPS = slicewise.PartitionBySequence(["north", "south"])
SINCE, UNTIL = datetime(2024, 1, 5, tzinfo=UTC), datetime(2024, 1, 8, tzinfo=UTC)


def test_a_day_needs_its_hours_and_is_needed_by_none_else() -> None:
    edge = Edge(downstream=DAILY, upstream=HOURLY)
    needed = edge.needed_by_texts(["2024-01-02"])
    assert (len(needed), needed[0].text) == (24, "2024-01-02T00:00Z")
    assert [key.text for key in edge.needing(needed, DAILY.select("2024-01"))] == ["2024-01-02"]
    assert not edge.needing(needed, DAILY.select("2024-01-03"))


@pytest.mark.parametrize(
    ("downstream", "upstream", "mapping", "is_lenient", "is_by_window", "needs_all"),
    [
        (DAILY, HOURLY, None, False, True, False),
        (DAILY, HOURLY, slicewise.Offset(-1), False, True, False),
        (DAILY, HOURLY, slicewise.All(), False, False, True),
        (SHOPS, HOURLY, None, False, True, True),
        (None, HOURLY, None, True, True, True),
        (None, SHOPS, None, True, True, False),
        (None, HOURLY, slicewise.Latest(), False, False, True),
        (None, None, None, False, True, False),
        (DAILY, None, None, False, True, False),
    ],
)
def test_an_edge_says_how_its_downstream_asset_reads(
    downstream: slicewise.PartitionDefinition | None,
    upstream: slicewise.PartitionDefinition | None,
    mapping: slicewise.PartitionMapping | None,
    is_lenient: bool,
    is_by_window: bool,
    needs_all: bool,
) -> None:
    edge = Edge(downstream=downstream, upstream=upstream, mapping=mapping)
    assert edge.reads_whatever_exists is is_lenient
    assert edge.depends_on_own_window is is_by_window
    assert edge.needs_all_of_time is needs_all


def test_all_of_time_lies_within_the_bounds_of_the_edge() -> None:
    edge = Edge(downstream=SHOPS, upstream=DAILY, since=SINCE, until=UNTIL)
    assert [key.text for key in edge.needed_by_texts(["north"])] == [
        "2024-01-05", "2024-01-06", "2024-01-07",
    ]  # fmt: skip


def test_windows_that_all_need_the_last_one_follow_it_within_their_own_bounds() -> None:
    edge = Edge(
        downstream=DAILY, upstream=DAILY, mapping=slicewise.Latest(), since=SINCE, until=UNTIL
    )
    last, earlier = DAILY.select("2024-01-07"), DAILY.select("2024-01-06")
    assert [key.text for key in edge.following(last, SINCE, UNTIL)] == [
        "2024-01-05", "2024-01-06", "2024-01-07",
    ]  # fmt: skip
    assert not edge.following(earlier, SINCE, UNTIL)


def test_a_partition_that_needs_a_nonexistent_one_is_told_from_others() -> None:
    edge = Edge(
        downstream=DAILY, upstream=HOURLY, mapping=mapping_of({"kind": "offset", "first": -1})
    )
    chosen = DAILY.select("2024-01-01..2024-01-03")
    blocking = edge.needed(chosen).blocking
    assert [key.text for key in edge.needing_nonexistent(chosen, blocking)] == ["2024-01-01"]


def test_an_expression_is_evaluated_from_its_leaves() -> None:
    a, b, c = ({"kind": "asset", "name": name} for name in "abc")
    expression: dict[str, Any] = {"kind": "all", "of": [a, {"kind": "any", "of": [b, c]}]}

    def is_met(*names: str) -> bool:
        return evaluate_schedule(
            expression, lambda leaf: leaf["name"] in names, of_any=any, of_all=all
        )

    assert [is_met("a"), is_met("a", "c"), is_met("b", "c")] == [False, True, False]
    newer, older = Match(Tick.NO_TIME, News.NEWER), Match(Tick.NO_TIME, News.OLD)
    matches_by_name: dict[str, set[Match]] = {"a": {older}, "b": {newer}, "c": set()}
    assert matches(expression, lambda leaf: matches_by_name[leaf["name"]]) == {newer}
