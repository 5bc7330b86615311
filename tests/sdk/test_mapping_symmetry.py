"""Dependencies of partitions, seen from either side, and of sets as of the members."""

import sys
from collections.abc import Iterable
from datetime import timedelta
from importlib import import_module
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slicewise import (
    All,
    Keys,
    Latest,
    Offset,
    Overlap,
    PartitionAtRuntime,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionMapping,
    PartitionSet,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.keys.product_key import WHOLE
from tests.sdk.installed_plugins import PACKAGE
from tests.sdk.strategies import definitions, intervals, sequences, zones

sys.path.insert(0, str(PACKAGE / "src"))
Lookback: Any = import_module("slicewise_retail").Lookback
PartitionByRetailCalendar: Any = import_module("slicewise_retail").PartitionByRetailCalendar
sys.path.remove(str(PACKAGE / "src"))

Definition = PartitionDefinition | None
# Everything that the drawn definitions can have; mappings that need bounds are given these.
BOUNDS: dict[str, Any] = {"since": "1980-01-01T00:00Z", "until": "2045-01-01T00:00Z"}
MOST = 25


@st.composite
def retail_weeks(draw: st.DrawFn) -> PartitionDefinition:
    start = draw(st.datetimes().filter(lambda moment: 1990 < moment.year < 2030))
    week: PartitionDefinition = PartitionByRetailCalendar(
        draw(st.sampled_from(["week", "period"])),
        timezone=draw(zones),
        start=start.replace(microsecond=0),
        end=start.replace(microsecond=0) + timedelta(days=draw(st.integers(0, 400))),
        exclude=draw(st.sampled_from([(), ("0 0 1-7 * *",)])),
    )
    return week


runtime_sets = st.lists(st.sampled_from("abcdef"), unique=True).map(PartitionAtRuntime("set").known)
one_sided = st.builds(
    lambda time, first, second: PartitionByProduct({"day": time, "dwh": first, "shop": second}),
    intervals(),
    sequences,
    st.just(PartitionBySequence(["north", "south"])),
)
all_definitions = st.one_of(
    definitions,
    retail_weeks(),
    one_sided,
    runtime_sets,
    st.builds(
        lambda time, sequence: PartitionByProduct([time, sequence]), retail_weeks(), sequences
    ),
    st.none(),
)


def _some_keys(definition: Definition) -> list[Any]:
    if definition is None:
        return [WHOLE]
    first_keys = list(definition.keys()[:MOST])
    return first_keys + [key for key in definition.keys()[-5:] if key not in first_keys]


@st.composite
def mappings(draw: st.DrawFn, upstream: Definition) -> PartitionMapping | None:
    first, size = draw(st.integers(-5, 5)), draw(st.integers(0, 4))
    keys = _some_keys(upstream)
    named = draw(st.lists(st.sampled_from(keys), max_size=3)) if keys else []
    mapping: PartitionMapping | None = draw(
        st.sampled_from(
            [
                *[None, Overlap(nonexistent="ignore"), All(), Latest(), Keys(named)],
                *[Offset(first, first + size), Lookback(size + 1)],
                Offset(first, first + size, nonexistent="ignore"),
            ]
        )
    )
    return mapping


@st.composite
def trios(draw: st.DrawFn) -> tuple[Definition, Definition, PartitionMapping | None]:
    """Draw a downstream and an upstream definition, and a mapping that makes sense between both."""
    downstream, upstream = draw(all_definitions), draw(all_definitions)
    mapping = draw(mappings(upstream))
    if mapping is not None:
        try:
            mapping.check(downstream, upstream)
        except ValueError:
            assume(False)
    return downstream, upstream, mapping


@given(trio=trios(), data=st.data())
@settings(max_examples=250, deadline=None)
def test_need_is_the_same_seen_from_either_side(
    trio: tuple[Definition, Definition, PartitionMapping | None], data: st.DataObject
) -> None:
    downstream, upstream, mapping = trio
    mine, upstream_keys = _some_keys(downstream), _some_keys(upstream)
    if not mine:
        return
    key = data.draw(st.sampled_from(mine))
    needed = upstream_partitions(downstream, upstream, key, mapping, **BOUNDS)
    for upstream_key in [*needed[:MOST], *upstream_keys]:
        back = downstream_partitions(upstream, downstream, upstream_key, mapping, **BOUNDS)
        assert (key in back) == (upstream_key in needed), (key, upstream_key)


@given(trio=trios(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_set_needs_what_its_members_need(
    trio: tuple[Definition, Definition, PartitionMapping | None], data: st.DataObject
) -> None:
    downstream, upstream, mapping = trio
    for source, target, find in [
        (downstream, upstream, upstream_partitions),
        (upstream, downstream, downstream_partitions),
    ]:
        keys = _some_keys(source)
        picked = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
        ordered = (downstream, upstream) if target is upstream else (upstream, downstream)
        joined = find(*ordered, PartitionSet.of(source, picked), mapping, **BOUNDS)
        one_by_one = PartitionSet(target, [])
        absent: list[tuple[int, int]] = []
        for key in picked:
            partitions = find(*ordered, key, mapping, **BOUNDS)
            one_by_one |= partitions
            absent += _seconds(partitions)
        assert joined == one_by_one
        assert _seconds(joined) == _joined(absent)
        assert_minimal(joined)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans of time that touch."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _seconds(partitions: PartitionSet) -> list[tuple[int, int]]:
    return [(span.first_second, span.stop_second) for span in partitions.nonexistent.spans]


def assert_minimal(partitions: PartitionSet) -> None:
    """Require that no two neighbouring window ranges could be one."""
    for first, second in zip(partitions.window_ranges, partitions.window_ranges[1:], strict=False):
        assert first.stop <= second.first
        assert partitions.space.count(first.stop, second.first) or first.segments != second.segments
