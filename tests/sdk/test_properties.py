"""Properties of every definition: of sets of its partitions, and of dependencies."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    PartitionDefinition,
    PartitionKey,
    PartitionSet,
    downstream_partitions,
    upstream_partitions,
)
from tests.sdk.strategies import definitions


@st.composite
def some_keys(draw: st.DrawFn, definition: PartitionDefinition) -> Sequence[PartitionKey]:
    """Draw some stretches of a definition's keys, and some single keys."""
    keys = definition.keys()
    count = min(len(keys), 400)
    first = draw(st.integers(0, len(keys) - count))
    listed = list(keys[first : first + count])
    picked: set[int] = set()
    for _ in range(draw(st.integers(0, 3))):
        low = draw(st.integers(0, max(count - 1, 0)))
        picked.update(range(low, min(count, low + draw(st.sampled_from([1, 2, 5, 50])))))
    return [listed[place] for place in sorted(picked)]


@given(definition=definitions, data=st.data())
@settings(max_examples=120, deadline=None)
def test_sets_of_partitions_are_sets_of_keys(
    definition: PartitionDefinition, data: st.DataObject
) -> None:
    left_keys, right_keys = (data.draw(some_keys(definition)) for _ in range(2))
    first, second = (PartitionSet.of(definition, keys) for keys in (left_keys, right_keys))
    assert list(first) == sorted(set(left_keys), key=left_keys.index)
    assert len(first) == len(set(left_keys))
    assert set(first | second) == set(left_keys) | set(right_keys)
    assert set(first & second) == set(left_keys) & set(right_keys)
    assert set(first - second) == set(left_keys) - set(right_keys)
    assert not set((first | second) - second) & set(right_keys)
    assert (first | second) - second == first - second
    assert all((key in first) == (key in set(left_keys)) for key in [*left_keys, *right_keys])


@given(definition=definitions, data=st.data())
@settings(max_examples=120, deadline=None)
def test_ranges_are_minimal_and_cover_the_set(
    definition: PartitionDefinition, data: st.DataObject
) -> None:
    keys = data.draw(some_keys(definition))
    chosen = PartitionSet.of(definition, keys)
    ranges = chosen.ranges
    if definition.time_dimension is None:
        assert len(ranges) == bool(keys)
        return
    windows = list(definition.time_dimension.windows())
    by_window: dict[object, set[str]] = {}
    for key in keys:
        by_window.setdefault(key.time, set()).add(key.segment)
    segments_by_window: dict[object, set[str]] = {}
    for key_range in ranges:
        assert key_range.first is not None
        assert key_range.last is not None
        for window in windows[windows.index(key_range.first) : windows.index(key_range.last) + 1]:
            assert window not in segments_by_window
            segments_by_window[window] = set(key_range.segments)
    assert segments_by_window == by_window
    # Neighbouring windows with equal segments are in one range: a break is never for nothing.
    wanted = [by_window.get(window) for window in windows]
    assert len(ranges) == sum(
        here is not None and here != before for before, here in pairwise([None, *wanted])
    )


@given(downstream=definitions, upstream=definitions, data=st.data())
@settings(max_examples=120, deadline=None)
def test_upstream_and_downstream_partitions_agree(
    downstream: PartitionDefinition, upstream: PartitionDefinition, data: st.DataObject
) -> None:
    keys, upstream_keys = downstream.keys(), upstream.keys()
    if not keys or not upstream_keys:
        return
    key = keys[data.draw(st.integers(0, len(keys) - 1))]
    needed = upstream_partitions(downstream, upstream, key)
    upstream_key = upstream_keys[data.draw(st.integers(0, len(upstream_keys) - 1))]
    for candidate in [upstream_key, *list(needed)[:10]]:
        assert (candidate in needed) == (
            key in downstream_partitions(upstream, downstream, candidate)
        )
        if key.time is not None and candidate.time is not None and candidate in needed:
            assert key.time.start < candidate.time.end
            assert candidate.time.start < key.time.end


@given(definition=definitions, data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_text_of_a_set_selects_it(definition: PartitionDefinition, data: st.DataObject) -> None:
    chosen = PartitionSet.of(definition, data.draw(some_keys(definition)))
    if chosen:
        assert definition.select(chosen.text) == chosen


@given(definition=definitions)
@settings(max_examples=60, deadline=None)
def test_slices_and_pages_of_keys_agree_with_the_list(definition: PartitionDefinition) -> None:
    keys = definition.keys()
    listed = list(keys)
    assert len(listed) == len(keys) == definition.count()
    pages = [keys[place : place + 97] for place in range(0, len(keys), 97)]
    assert [key for page in pages for key in page] == listed
    assert list(keys[::-31]) == listed[::-31]
    assert list(keys[-5:]) == listed[-5:]
