"""Unit tests in a bundle."""

from positions import measured
from sales import noon, orders, takings
from splits import is_positive, split

from slicewise import PartitionError
from slicewise.testing import materialize


class FakeFrame:
    """A stand-in for a DataFrame."""

    def join(self, right_frame: object, on: str) -> "FakeFrame":
        """Return the frame itself."""
        return self


def test_takings_are_written() -> None:
    """The function returns the stand-in for a frame."""
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
