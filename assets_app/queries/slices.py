"""Shapes in which slices are read."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Count

if TYPE_CHECKING:
    from assets_app.models import AssetPartition  # noqa: F401


class AssetPartitionQuerySet(models.QuerySet["AssetPartition"]):
    """Slices of assets."""

    def idle_by_state(self) -> dict[str, int]:
        """How many of those that no run holds are in which settled state: one statement."""
        idle = self.filter(held_by__isnull=True).order_by().values_list("state")
        return dict(idle.annotate(number=Count("pk")))
