"""Querysets of assets."""

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from assets_app.models import Asset  # noqa: F401


class AssetQuerySet(models.QuerySet["Asset"]):
    """Assets, with the related rows that lists and pages show."""

    def declared(self) -> "AssetQuerySet":
        """Select assets that a loaded file declares, with definition, producer and schedule."""
        rows = self.filter(active=True)
        return rows.select_related("partition_definition", "producer__schedule")
