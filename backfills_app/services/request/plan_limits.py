"""Limits of the rows that a plan reads; the number of rows is known before the plan reads any."""

from collections.abc import Sequence
from dataclasses import dataclass

from assets_app.queries.partition_spans import most_rows
from backfills_app.services.partitions.scopes import AssetScope


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimit:
    """The most partitions of a plan, and the most rows of upstream partitions that these need."""

    partitions: int
    upstream_rows: int

    def allows(self, scopes: Sequence[AssetScope]) -> bool:
        """Return whether a plan of these assets stays within the limit."""
        if sum(len(scope.whole) for scope in scopes) > self.partitions:
            return False
        room = self.upstream_rows
        for scope in scopes:
            for edge in scope.edges:
                room -= most_rows(edge.needed(scope.whole))
                if room < 0:
                    return False
        return True
