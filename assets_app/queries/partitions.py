"""Querysets of partitions."""

from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models
from django.db.models import Count, F, Min, Value
from django.db.models.functions import Coalesce

from partitions_app.rules import identity_of

if TYPE_CHECKING:
    from assets_app.models import Asset, AssetPartition  # noqa: F401

Row = TypeVar("Row", bound=models.Model)


class CutQuerySet(models.QuerySet[Row]):
    """Rows that are kept of assets under the identity of a definition."""

    def as_cut_now(self) -> Self:
        """Select the rows under the present definition of each asset; rows under an earlier
        definition are kept, and not counted.
        """
        present = Coalesce(F("asset__partition_definition__identity"), Value(identity_of(None)))
        # Within the filter, the expression would leave out all assets without a definition: a
        # filter joins the table of a compared value by an inner join.
        return self.alias(present_identity=present).filter(identity=F("present_identity"))


class AssetPartitionQuerySet(CutQuerySet["AssetPartition"]):
    """Partitions of assets."""

    def made_of(self, asset: "Asset") -> "AssetPartitionQuerySet":
        """Select the partitions of the asset's present definition that were ever materialized."""
        return self.filter(asset=asset, identity=asset.identity, version__gt=0)

    def first_start(self) -> datetime | None:
        """Return the start of the first window; None where no partition has a window."""
        first: datetime | None = self.aggregate(first=Min("window_start"))["first"]
        return first

    def idle_by_state(self) -> dict[str, int]:
        """Count the partitions that no run holds, by settled state: one statement."""
        idle = self.filter(held_by__isnull=True).order_by().values_list("state")
        return dict(idle.annotate(number=Count("pk")))
