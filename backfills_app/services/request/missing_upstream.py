"""The upstream partitions for which a plan skips partitions: missing, and not in the backfill."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import slicewise
from assets_app.models import Asset
from backfills_app.services.partitions.frozen_assets import BackfillEdge
from partitions_app.labels import label_of_key


class MissingUpstream(NamedTuple):
    """The missing partitions of one upstream asset: the count, the first key and the last key.

    The keys are empty for an asset that is not partitioned. The count is 0 for an asset of which
    any partition is enough and none is materialized.
    """

    asset: Asset
    partitions: int = 0
    first: str = ""
    last: str = ""
    first_label: str = ""
    last_label: str = ""

    @property
    def text(self) -> str:
        """``2 missing partitions of days: 2013-03-30 to 2013-03-31``."""
        name = self.asset.name
        if not self.partitions:
            return f"data of {name}, which has no materialized partition"
        if not self.first:
            return f"{name}, which is not materialized"
        if self.partitions == 1:
            return f"the missing partition {self.first} of {name}"
        return f"{self.partitions:,} missing partitions of {name}: {self.first} to {self.last}"


def missing_by_asset(
    edges: Iterable[BackfillEdge],
    skipped: slicewise.PartitionSet,
    blocked_by_edge: Mapping[BackfillEdge, slicewise.PartitionSet],
    missing_by_edge: Mapping[BackfillEdge, slicewise.PartitionSet],
) -> tuple[MissingUpstream, ...]:
    """Return, by asset, the missing partitions for which partitions are skipped.

    ``blocked_by_edge`` has the partitions that the upstream asset of an edge blocks, and
    ``missing_by_edge`` the missing partitions among all that the asset needs, as the plan has
    computed these sets: the function reads no rows. Of alternatives in a schedule (`a | b`) all are
    named.
    """
    return tuple(
        _missing_upstream(edge, blocked, missing_by_edge.get(edge))
        for edge in edges
        if (blocked := skipped & blocked_by_edge[edge])
    )


def _missing_upstream(
    edge: BackfillEdge, blocked: slicewise.PartitionSet, missing: slicewise.PartitionSet | None
) -> MissingUpstream:
    missing = edge.needed(blocked) & missing if missing else None
    if not missing or edge.reads_whatever_exists:
        return MissingUpstream(edge.asset)
    first, last = missing[0], missing[-1]
    return MissingUpstream(
        edge.asset, len(missing), first.text, last.text, label_of_key(first), label_of_key(last)
    )
