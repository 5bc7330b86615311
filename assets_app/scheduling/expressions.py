"""Schedule expressions over assets and times: the ways in which an expression is met."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from functools import partial
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
    # An asset is fresh enough: that allows a partition to be made, and is no reason to make one.
    FRESH = 1
    OLD = 2
    NEWER = 3


class Way(NamedTuple):
    """One way in which an expression is met: by the assets and times of this way, and no others."""

    tick: Tick
    news: News
    # The latest moment of the terms `After` in the way: the way is met from then on.
    after: datetime | None = None
    # Whether such a term asks to make the partition again once missing inputs have come.
    remakes: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether the way has only times, all past the first tick: a time makes a partition due
        once.
        """
        return self.news is News.NO_ASSET and self.tick is not Tick.FIRST

    def is_due(self, *, is_open: bool) -> bool:
        """Return whether the way makes a partition due; ``is_open``: by times and fresh assets
        alone the partition may still be made, unlike a window that has data already.
        """
        if self.tick is Tick.PAST or self.is_spent:
            return False
        return self.news is News.NEWER or (self.news <= News.FRESH and is_open)


Leaf = Mapping[str, Any]


def ways(expression: Mapping[str, Any], of_leaf: Callable[[Leaf], set[Way]]) -> set[Way]:
    """Return all ways in which an expression is met, given the ways in which each of its assets and
    times is met: at most a dozen, whatever the size of the expression.
    """
    return evaluate_schedule(
        expression, of_leaf, of_any=lambda operands: set().union(*operands), of_all=_combined
    )


def ways_met(
    expression: Mapping[str, Any],
    of_leaf: Callable[[datetime | None, Leaf], set[Way]],
    moments: Iterable[datetime],
) -> set[Way]:
    """Return all ways in which an expression with terms `After` is met.

    ``moments`` are the moments of these terms that count. A time beside `After` is met by its first
    tick from the moment of `After` on: the expression is examined once for each moment, and the
    ways are kept whose latest moment is that one. ``of_leaf`` gets the moment and a term.
    """
    all_ways: set[Way] = set()
    for moment in (None, *moments):
        moment_ways = ways(expression, partial(of_leaf, moment))
        all_ways |= {way for way in moment_ways if way.after == moment}
    return all_ways


def _combined(operand_ways: Sequence[set[Way]]) -> set[Way]:
    """Return the ways in which all operands are met together."""
    combined_ways = {Way(Tick.NO_TIME, News.NO_ASSET)}
    for right_ways in operand_ways:
        combined_ways = {
            _both(left_way, right_way) for left_way in combined_ways for right_way in right_ways
        }
    return combined_ways


def _both(left_way: Way, right_way: Way) -> Way:
    moments = [moment for moment in (left_way.after, right_way.after) if moment is not None]
    return Way(
        max(left_way.tick, right_way.tick),
        max(left_way.news, right_way.news),
        max(moments, default=None),
        left_way.remakes or right_way.remakes,
    )
