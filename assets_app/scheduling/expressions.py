"""Schedule expressions over assets and times: the ways in which an expression is met."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from slicewise.declaring import evaluate_schedule


class Tick(IntEnum):
    """How the ticks so far meet a time in an expression."""

    NO_TIME = 0
    # By a past tick alone: a tick makes partitions due at its own moment, not ever after.
    PAST = 1
    # By a tick that is examined now.
    NOW = 2
    # By a tick that is examined now and is the first one that could meet the time.
    FIRST = 3


class News(IntEnum):
    """Whether an asset brings data that is newer than the inputs of the partition."""

    NO_ASSET = 0
    OLD = 1
    NEWER = 2


class Way(NamedTuple):
    """One way in which an expression is met: by the assets and times of this way, and no others."""

    tick: Tick
    news: News

    @property
    def is_spent(self) -> bool:
        """Whether the way has only times, all past the first tick: a time makes a partition due
        once.
        """
        return self.news is News.NO_ASSET and self.tick is not Tick.FIRST

    def is_due(self, *, is_made: bool) -> bool:
        """Return whether the way makes a partition due; ``is_made``: a window that has data
        already.
        """
        if self.tick is Tick.PAST or self.is_spent:
            return False
        return self.news is News.NEWER or (self.news is News.NO_ASSET and not is_made)


Leaf = Mapping[str, Any]


def ways(expression: Mapping[str, Any], of_leaf: Callable[[Leaf], set[Way]]) -> set[Way]:
    """Return all ways in which an expression is met, given the ways in which each of its assets and
    times is met: at most a dozen, whatever the size of the expression.
    """
    return evaluate_schedule(
        expression, of_leaf, of_any=lambda operands: set().union(*operands), of_all=_combined
    )


def _combined(operand_ways: Sequence[set[Way]]) -> set[Way]:
    """Return the ways in which all operands are met together."""
    combined_ways = {Way(Tick.NO_TIME, News.NO_ASSET)}
    for right_ways in operand_ways:
        combined_ways = {
            Way(max(left_way.tick, right_way.tick), max(left_way.news, right_way.news))
            for left_way in combined_ways
            for right_way in right_ways
        }
    return combined_ways
