"""Schedule expressions over assets and times: the ways in which an expression is met."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple


class Tick(IntEnum):
    """How a time in an expression is met by its ticks so far."""

    NO_TIME = 0
    # By a tick of the past alone: a tick makes due at its own moment, not ever after.
    PAST = 1
    # By one of the ticks that are looked at now.
    NOW = 2
    # By one of them, and it is the first one that could meet it.
    FIRST = 3


class News(IntEnum):
    """Whether something that an asset brings is newer than what the partition was made from."""

    NO_ASSET = 0
    OLD = 1
    NEWER = 2


class Way(NamedTuple):
    """One way in which an expression is met: by these of its parts, and no others."""

    tick: Tick
    news: News

    @property
    def is_spent(self) -> bool:
        """Whether it is by times alone, whose first ticks have been: these make due once."""
        return self.news is News.NO_ASSET and self.tick is not Tick.FIRST

    def is_due(self, *, is_made: bool) -> bool:
        """Return whether it makes a partition due; ``is_made``: a window that has data already."""
        if self.tick is Tick.PAST or self.is_spent:
            return False
        return self.news is News.NEWER or (self.news is News.NO_ASSET and not is_made)


Leaf = Mapping[str, Any]


def ways(expression: Mapping[str, Any], of_leaf: Callable[[Leaf], set[Way]]) -> set[Way]:
    """Return all ways in which an expression is met, by those in which each asset and each time of
    it is: at most a dozen, whatever its size.
    """
    if "of" not in expression:
        return of_leaf(expression)
    parts = [ways(part, of_leaf) for part in expression["of"]]
    if expression["kind"] == "any":
        return set().union(*parts)
    found = {Way(Tick.NO_TIME, News.NO_ASSET)}
    for part in parts:
        found = {
            Way(max(one.tick, other.tick), max(one.news, other.news))
            for one in found
            for other in part
        }
    return found
