"""Key classes as people declare them."""

from datetime import UTC, date, datetime
from typing import Any, ClassVar

from slicewise import Interval, PartitionKey


class Position(PartitionKey):
    x: float
    y: float
    z: float

    def __str__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"


class Shop(PartitionKey):
    name: str
    opened: date = date(2024, 1, 1)
    kind: ClassVar[str] = "shop"

    def describe(self) -> str:
        return f"{self.kind} {self.name}"


class NamedShop(Shop):
    """A subclass has the fields of its class first, then its own fields."""

    owner: str = "ada"


class Anything(PartitionKey):
    value_: Any
    other: object = 0


class Route(PartitionKey):
    start: Position
    window: Interval
    stops: tuple[str, ...] = ()


DAY = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
