"""Schedule expressions over assets and times: the matches by which an expression is met."""

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


class Match(NamedTuple):
    """One set of assets and times that meets an expression: the tick and the news of the set."""

    tick: Tick
    news: News
    # The latest moment of the terms `After` in the match: the match begins then.
    after: datetime | None = None
    # Whether such a term asks to make the partition again once missing inputs have come.
    remakes: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether the match has only times, all past the first tick: a time makes a partition due
        once.
        """
        return self.news is News.NO_ASSET and self.tick is not Tick.FIRST

    def is_due(self, *, is_open: bool) -> bool:
        """Return whether the match makes a partition due; ``is_open``: by times and fresh assets
        alone the partition may still be made, unlike a window that has data already.
        """
        if self.tick is Tick.PAST or self.is_spent:
            return False
        return self.news is News.NEWER or (self.news <= News.FRESH and is_open)


Leaf = Mapping[str, Any]


def matches(expression: Mapping[str, Any], of_leaf: Callable[[Leaf], set[Match]]) -> set[Match]:
    """Return all matches of an expression, given the matches of each asset and time in the
    expression: at most a dozen, whatever the size of the expression.
    """
    return evaluate_schedule(
        expression, of_leaf, of_any=lambda operands: set().union(*operands), of_all=_combined
    )


def matches_by_moment(
    expression: Mapping[str, Any],
    of_leaf: Callable[[datetime | None, Leaf], set[Match]],
    moments: Iterable[datetime],
) -> set[Match]:
    """Return all matches of an expression with terms `After`.

    ``moments`` are the moments of these terms that count. A time beside `After` is met by its first
    tick from the moment of `After` on: the expression is examined once for each moment, and the
    matches are kept whose latest moment is that one. ``of_leaf`` gets the moment and a term.
    """
    all_matches: set[Match] = set()
    for moment in (None, *moments):
        moment_matches = matches(expression, partial(of_leaf, moment))
        all_matches |= {match for match in moment_matches if match.after == moment}
    return all_matches


def _combined(operand_matches: Sequence[set[Match]]) -> set[Match]:
    """Return the matches of all operands together."""
    combined_matches = {Match(Tick.NO_TIME, News.NO_ASSET)}
    for right_matches in operand_matches:
        combined_matches = {
            _both(left_match, right_match)
            for left_match in combined_matches
            for right_match in right_matches
        }
    return combined_matches


def _both(left_match: Match, right_match: Match) -> Match:
    moments = [moment for moment in (left_match.after, right_match.after) if moment is not None]
    return Match(
        max(left_match.tick, right_match.tick),
        max(left_match.news, right_match.news),
        max(moments, default=None),
        left_match.remakes or right_match.remakes,
    )
