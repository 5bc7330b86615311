"""Offsets of every zone of the tzdata package, against the readings of the standard library."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.resources import files
from random import Random

import pytest

from slicewise import DefinitionError
from slicewise.calendar.zones import Zone, to_datetime, to_instant, zone
from tests.sdk.reference_ticks import zone_of

NAMES = (files("tzdata") / "zones").read_text().split()
FIRST = to_instant(datetime(1900, 1, 1, tzinfo=UTC))
SOON = to_instant(datetime(2036, 1, 1, tzinfo=UTC))
LATER = to_instant(datetime(2101, 1, 1, tzinfo=UTC))


def _offset(name: str, second: int) -> float:
    offset = datetime.fromtimestamp(second, zone_of(name)).utcoffset()
    assert offset is not None
    return offset.total_seconds()


def _check(place: Zone, seconds: Iterable[int]) -> None:
    for second in seconds:
        assert place.offset_at(second) == _offset(place.name, second), to_datetime(second)


def test_the_list_of_zones_is_whole() -> None:
    assert len(NAMES) > 590
    assert {"Africa/Casablanca", "America/New_York", "Antarctica/Troll", "UTC"} <= set(NAMES)


def test_every_zone_changes_when_the_library_says() -> None:
    for name in NAMES:
        place = zone(name)
        starts = [start for start in place.near.starts if start >= FIRST]
        _check(place, [second for start in starts for second in (start - 1, start)])


def test_the_rule_that_closes_a_zone_is_followed_to_the_end_of_the_century() -> None:
    for name in NAMES:
        place, draw = zone(name), Random(name)
        table = place.table_until(LATER)
        changes = [start for start in table.starts if start >= SOON]
        near = [start - early for start in changes[::5] for early in (0, 1)]
        for second in [*near, *(draw.randrange(SOON, LATER) for _ in range(40))]:
            offset = table.offsets[bisect_right(table.starts, second) - 1]
            assert offset == _offset(name, second), (name, to_datetime(second))
        # Rules change twice a year; what is on record may change more often.
        assert not place.changes_for_ever or len(changes) >= 2 * 65


@pytest.mark.parametrize(
    "name", ["America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Africa/Casablanca"]
)
def test_offsets_go_on_to_the_end_of_the_calendar(name: str) -> None:
    draw = Random(name)
    _check(zone(name), [draw.randrange(LATER, 253_000_000_000) for _ in range(300)])


@pytest.mark.parametrize(
    "name", ["", "Mars/Base", "../tzdata/zones", "/etc/hosts", "zone.tab", "Europe"]
)
def test_unknown_time_zones_are_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"unknown time zone .*: use an IANA name"):
        zone(name)


def test_an_unknown_zone_is_told_with_the_name_that_is_spelled_alike() -> None:
    with pytest.raises(
        DefinitionError, match=r"use an IANA name \(did you mean 'Asia/Kolkata'\?\)$"
    ):
        zone("Asia/Kolkatta")
    with pytest.raises(DefinitionError, match=r"use an IANA name, such as 'Europe/Berlin'$"):
        zone("Zzzzzzz")
