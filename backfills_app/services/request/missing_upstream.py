"""The upstream partitions for which a plan skips partitions: missing, and not in the backfill."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import slicewise
from assets_app.models import Asset
from backfills_app.services.partitions.frozen_assets import BackfillEdge
from partitions_app.labels import label_of_key


class MissingUpstream(NamedTuple):
    """The missing partitions of one upstream asset: the count, the first key and the last key.

    The keys are empty for an asset that is not partitioned.
    """

    asset: Asset
    partitions: int
    first: str
    last: str
    first_label: str
    last_label: str

    @property
    def text(self) -> str:
        """``days, 2 are missing: 2013-03-30 to 2013-03-31``."""
        verb = "is" if self.partitions == 1 else "are"
        ends = f"{self.first} to {self.last}" if self.last != self.first else self.first
        text = f"{self.asset.name}, {self.partitions:,} {verb} missing"
        return f"{text}: {ends}" if ends else text


def missing_by_asset(
    edges: Iterable[BackfillEdge],
    skipped: slicewise.PartitionSet,
    missing_by_edge: Mapping[BackfillEdge, slicewise.PartitionSet],
) -> tuple[MissingUpstream, ...]:
    """Return, by asset, the missing partitions that the skipped partitions need.

    ``missing_by_edge`` has the missing partitions among all that the asset needs, as the plan has
    computed these sets: the function reads no rows.
    """
    if not skipped:
        return ()
    missing_sets = (
        (edge.asset, _needed_and_missing(edge, edge.needed(skipped), missing_by_edge[edge]))
        for edge in edges
        if edge in missing_by_edge
    )
    return tuple(
        MissingUpstream(
            asset,
            len(missing),
            missing[0].text,
            missing[-1].text,
            label_of_key(missing[0]),
            label_of_key(missing[-1]),
        )
        for asset, missing in missing_sets
        if missing
    )


def _needed_and_missing(
    edge: BackfillEdge, needed: slicewise.PartitionSet, missing: slicewise.PartitionSet
) -> slicewise.PartitionSet:
    if edge.reads_whatever_exists and needed - missing:
        # Any partition is enough for such an asset, and there is one.
        return slicewise.PartitionSet(edge.upstream, ())
    return needed & missing
