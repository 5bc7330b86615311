"""The target of a run: partitions of an asset, or the discovery of partitions."""

from dataclasses import dataclass

import slicewise
from assets_app.models.catalogue import Asset

# The identity of the one row that a run holds which discovers partitions. The row is no partition
# itself: lists and counts, which go by the identity of the definition, leave it out.
DISCOVERY = "discovery"


@dataclass(frozen=True, slots=True)
class Target:
    """An asset as runs claim it: by its partitions, or for a run that discovers partitions.

    A discovering run is asked for no partition. For the run the asset counts as not partitioned,
    with a single row of a separate identity, so that one such run goes on at a time.
    """

    asset: Asset
    is_discovering: bool = False

    @property
    def definition(self) -> slicewise.PartitionDefinition | None:
        """The definition of the claimed partitions; None for the single row."""
        return None if self.is_discovering else self.asset.definition

    @property
    def identity(self) -> str:
        """The identity under which the claimed partitions are kept."""
        return DISCOVERY if self.is_discovering else self.asset.identity
