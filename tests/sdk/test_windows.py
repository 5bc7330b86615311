"""Properties of the windows of every definition."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import PartitionByInterval
from slicewise.partitions.windows import Windows
from tests.sdk.reference_ticks import walked_ticks
from tests.sdk.strategies import cadences, crons, intervals, spans, zones


@given(cron=crons, zone=zones, data=st.data())
@settings(max_examples=300, deadline=None)
def test_boundaries_are_those_that_croniter_walks_to(
    cron: str, zone: str, data: st.DataObject
) -> None:
    span = data.draw(spans(name=zone))
    windows = list(PartitionByInterval(cron, timezone=zone).windows(*span))
    ticks = walked_ticks(cron, zone, span[0], span[1] + timedelta(seconds=1))
    assert [(window.start, window.end) for window in windows] == list(pairwise(ticks))


@given(cadence=cadences, zone=zones, data=st.data())
@settings(max_examples=80, deadline=None)
def test_windows_are_not_empty_and_tile_time(
    cadence: str | timedelta, zone: str, data: st.DataObject
) -> None:
    span = data.draw(spans(name=zone))
    definition = PartitionByInterval(cadence, timezone=zone)
    windows = list(definition.windows(*span))
    assert all(window.start < window.end for window in windows)
    assert all(first.end == second.start for first, second in pairwise(windows))
    assert all(span[0] <= window.start and window.end <= span[1] for window in windows)
    # None is left out at either end.
    around = definition.window_at(span[0]), definition.window_at(span[1])
    assert around[0] is not None
    assert around[1] is not None
    if windows:
        assert windows[0].start in (around[0].start, around[0].end)
        assert windows[-1].end == around[1].start


@given(definition=intervals())
@settings(max_examples=80, deadline=None)
def test_count_is_the_length_of_the_list_and_slices_agree_with_it(
    definition: PartitionByInterval,
) -> None:
    windows = definition.windows()
    listed = list(windows)
    assert definition.count() == len(windows) == len(listed)
    assert [windows[place] for place in range(0, len(listed), 7)] == listed[::7]
    assert list(windows[3:-2]) == listed[3:-2]
    assert list(windows[5:][2:9]) == listed[7:14]
    assert all(window in windows and window in definition for window in listed[:50])


@given(definition=intervals())
@settings(max_examples=50, deadline=None)
def test_text_names_its_window_alone(definition: PartitionByInterval) -> None:
    windows = definition.windows()[:300]
    texts = [window.text for window in windows]
    assert len(set(texts)) == len(texts)
    assert [definition.parse(text) for text in texts] == list(windows)


@given(definition=intervals(), data=st.data())
@settings(max_examples=120, deadline=None)
def test_runs_and_trimmed_ranges_have_the_windows_that_are_not_excluded(
    definition: PartitionByInterval, data: st.DataObject
) -> None:
    windows = definition.space.time
    lowest, highest = windows.between(None, None)
    first = data.draw(st.integers(lowest, highest))
    stop = data.draw(st.integers(first, min(highest, first + 2_000)))
    included = [number for number in range(first, stop) if windows.has(number)]
    runs = list(windows.runs(first, stop))
    assert [number for run in runs for number in range(*run)] == included
    assert all(before[1] < after[0] for before, after in pairwise(runs))
    trimmed = (included[0], included[-1] + 1) if included else (stop, stop)
    assert windows.trim(first, stop) == trimmed


def test_distant_windows_are_combined_without_the_excluded_windows_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definition = PartitionByInterval("*/5 * * * *", start="2014-01-01", exclude="*/10 * * * *")
    asked: list[int] = []
    excluded = Windows.excluded

    def counted_excluded(windows: Windows, first: int, stop: int) -> Sequence[int]:
        asked.append(stop - first)
        return excluded(windows, first, stop)

    monkeypatch.setattr(Windows, "excluded", counted_excluded)
    days = definition.select("2014-01-05,2023-12-20")
    assert len(days & days | days) == 288
    # Between the two days are a million windows.
    assert sum(asked) < 5_000


@given(definition=intervals(), place=st.floats(0, 1))
@settings(max_examples=120, deadline=None)
def test_the_window_at_an_instant_is_the_one_that_contains_it(
    definition: PartitionByInterval, place: float
) -> None:
    assert definition.start is not None
    assert definition.end is not None
    instant = definition.start + (definition.end - definition.start) * place
    containing = [window for window in definition.windows() if instant in window]
    window = definition.window_at(instant)
    assert containing == ([] if window is None else [window])


@given(definition=intervals(), fraction=st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_pages_of_a_listing_agree_with_the_whole(
    definition: PartitionByInterval, fraction: float
) -> None:
    windows = definition.windows()
    if not windows:
        return
    border = windows[int(fraction * (len(windows) - 1))].start
    pages = [*definition.windows(until=border), *definition.windows(since=border)]
    assert pages == list(windows)


@given(definition=intervals())
@settings(max_examples=50, deadline=None)
def test_exclusions_leave_the_neighbours_as_they_are(definition: PartitionByInterval) -> None:
    plain = PartitionByInterval(
        definition.to_json()["cadence"],
        timezone=definition.timezone,
        start=definition.start,
        end=definition.end,
    )
    windows = set(definition.windows())
    assert windows <= set(plain.windows())
    assert windows == {window for window in plain.windows() if window in definition}
