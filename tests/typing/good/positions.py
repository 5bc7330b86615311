"""Keys of a class of the bundle, definitions, sets of partitions, and dependencies."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from slicewise import (
    Interval,
    Offset,
    PartitionByInterval,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionKeyError,
    PartitionSet,
    asset,
    downstream_partitions,
    normalize_uri,
    openlineage_name,
    upstream_partitions,
)


class Position(PartitionKey):
    """A place, with an optional name."""

    x: float
    y: float
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name}({self.x}, {self.y})"


class Visit(Position):
    """A place on a day."""

    on: date = date(2024, 1, 1)


PLACES = PartitionBySequence([Position(0.0, 0.0), Position(1.0, y=2.5, name="hill")])
DAILY = PartitionByInterval("@daily", start="2024-01-01")
HOURLY = PartitionByInterval("@hourly", start="2024-01-01")


@asset(partition=PLACES)
def measured() -> None:
    """Return the measurements at a place."""


def height(place: Position) -> float:
    """Return a field with its type."""
    return place.x + place.y


def windows(until: date) -> list[timedelta]:
    """Return windows as Intervals."""
    listed: Sequence[Interval] = DAILY.windows(until=until)
    midday: Interval | None = DAILY.window_at(datetime(2024, 1, 1, 12, tzinfo=UTC))
    parsed: Interval = DAILY.parse("2024-01-02")
    assert midday is not None
    assert midday < parsed
    return [window.duration for window in listed]


def chosen(definition: PartitionDefinition) -> PartitionSet:
    """Combine sets of partitions."""
    spring = definition.select("2024-03..2024-05")
    texts: list[str] = [key_range.segments[0] for key_range in spring.ranges if key_range.segments]
    count: int = len(spring)
    again = PartitionDefinition.from_json(definition.to_json())
    assert again == definition
    assert texts or count
    return (spring | definition.select("2024-07")) - definition.select("2024-04-01")


def dependencies() -> int:
    """Return needed partitions as sets."""
    day = DAILY.parse("2024-01-02")
    hours = upstream_partitions(DAILY, HOURLY, day)
    days = downstream_partitions(HOURLY, DAILY, hours, Offset(-1))
    unpartitioned = upstream_partitions(None, DAILY, [day], until=date(2024, 2, 1))
    return len(hours) + len(days.nonexistent.spans) + len(unpartitioned)


def name_of(text: str) -> str:
    """Return the text of an error, which is a ValueError."""
    try:
        return PLACES.parse(text).text
    except PartitionKeyError as error:
        namespace, name = openlineage_name(normalize_uri("s3://bucket/key"))
        return f"{error}: {namespace} {name}"
