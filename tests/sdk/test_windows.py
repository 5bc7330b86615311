"""What holds for the windows of every definition."""

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import PartitionByInterval
from tests.sdk.reference import walked_ticks
from tests.sdk.strategies import cadences, crons, instants, intervals, spans, zones


@given(cron=crons, zone=zones, span=spans())
@settings(max_examples=160, deadline=None)
def test_boundaries_are_those_that_croniter_walks_to(
    cron: str, zone: str, span: tuple[datetime, datetime]
) -> None:
    definition = PartitionByInterval(cron, timezone=zone)
    windows = list(definition.windows(*span))
    ticks = walked_ticks(cron, zone, span[0], span[1] + timedelta(seconds=1))
    assert [(window.start, window.end) for window in windows] == list(pairwise(ticks))


@given(cadence=cadences, zone=zones, span=spans())
@settings(max_examples=80, deadline=None)
def test_windows_are_not_empty_and_tile_time(
    cadence: str | timedelta, zone: str, span: tuple[datetime, datetime]
) -> None:
    windows = list(PartitionByInterval(cadence, timezone=zone).windows(*span))
    assert all(window.start < window.end for window in windows)
    assert all(one.end == two.start for one, two in pairwise(windows))
    assert all(span[0] <= window.start and window.end <= span[1] for window in windows)


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


@given(cadence=cadences, zone=zones, instant=instants)
@settings(max_examples=80, deadline=None)
def test_one_window_contains_an_instant(
    cadence: str | timedelta, zone: str, instant: datetime
) -> None:
    definition = PartitionByInterval(cadence, timezone=zone)
    window = definition.window_at(instant)
    assert window is not None
    assert window.start <= instant < window.end
    assert definition.window_at(window.start) == window
    assert definition.window_at(window.end) != window


@given(definition=intervals(), cut=st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_pages_of_a_listing_agree_with_the_whole(
    definition: PartitionByInterval, cut: float
) -> None:
    windows = definition.windows()
    if not windows:
        return
    border = windows[int(cut * (len(windows) - 1))].start
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
    kept = set(definition.windows())
    assert kept <= set(plain.windows())
    assert kept == {window for window in plain.windows() if window in definition}
