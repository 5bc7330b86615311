"""Unit tests of one's own."""

from positions import measured
from sales import noon, orders, takings
from splits import is_positive, split

from slicewise import PartitionError
from slicewise.testing import materialize


class FakeFrame:
    """Stands in for a DataFrame."""

    def join(self, right_frame: object, on: str) -> "FakeFrame":
        """Itself."""
        return self


def test_takings_are_written() -> None:
    """A frame that stands in for one is what comes back."""
    frame = FakeFrame()
    frames = {"orders": frame, "prices": frame, "suppliers": frame}
    assert materialize(takings, partition="2024-01-01", upstream=frames) is frame


def test_others() -> None:
    """All kinds of assets can be tried."""
    materialize(measured, partition="*")
    materialize(noon, partition="2024-01-01", params={"limit": 3})
    materialize(split, partition="2024-01-01", upstream={"trips": FakeFrame()})
    materialize(orders, partition="2024-01-01", spark=None)
    name: str = takings.name
    assert [is_positive.name, name]
    assert issubclass(PartitionError, ValueError)
