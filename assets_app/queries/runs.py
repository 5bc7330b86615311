"""Shapes in which runs are read."""

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from assets_app.models import Asset, Run  # noqa: F401


class RunQuerySet(models.QuerySet["Run"]):
    """Runs, with what lists and pages show of them."""

    def listed(self) -> "RunQuerySet":
        """With the rows that a line of a list names.

        Without the spec of the partition definition: a rule is read once for the whole process.
        """
        rows = self.select_related("asset__partition_definition", "group", "requested_by")
        return rows.defer("asset__partition_definition__spec")

    def making(self, asset: "Asset") -> "RunQuerySet":
        """Those that make the asset, also where another was asked for that is made with it."""
        if not asset.made_with:
            return self.filter(asset=asset)
        return self.filter(asset__name__in=[asset.name, *asset.made_with])
