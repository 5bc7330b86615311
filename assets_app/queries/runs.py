"""Querysets of runs."""

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from assets_app.models import Asset, Run  # noqa: F401


class RunQuerySet(models.QuerySet["Run"]):
    """Runs, with the related rows that lists and pages show."""

    def listed(self) -> "RunQuerySet":
        """Join the rows that a list shows of each run.

        The spec of the partition definition is left out: a definition is read once for the whole
        process.
        """
        rows = self.select_related("asset__partition_definition", "group", "requested_by")
        return rows.defer("asset__partition_definition__spec")

    def making(self, asset: "Asset") -> "RunQuerySet":
        """Select the runs that materialize the asset, alone or together with other assets."""
        if not asset.made_with:
            return self.filter(asset=asset)
        return self.filter(asset__name__in=[asset.name, *asset.made_with])
