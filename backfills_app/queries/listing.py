"""Backfills as lists, pages and programs read them."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Prefetch

from assets_app.models import ProducerVersion

if TYPE_CHECKING:
    from backfills_app.models import Backfill  # noqa: F401


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """Backfills, with what lists and pages show of them."""

    def listed(self) -> "BackfillQuerySet":
        """Select backfills that are not deleted, with the rows of a list's line: two statements."""
        return self.recorded().filter(deleted=False)

    def recorded(self) -> "BackfillQuerySet":
        """Select all backfills, deleted ones too, with their assets and counts: two statements."""
        return (
            self.select_related("asset__partition_definition", "submitted_by", "group")
            .defer("asset__partition_definition__spec")
            .prefetch_related("assets__asset")
        )

    def choosing(self, name: str) -> "BackfillQuerySet":
        """Select backfills for which the asset was chosen, alone or among several."""
        # By the name of the relation: models import this module.
        chosen = self.model.objects.filter(assets__asset__name=name, assets__role="chosen")
        return self.filter(pk__in=chosen.values("pk"))

    def told(self) -> "BackfillQuerySet":
        """Select backfills with their assets, counts and versions of the code: three statements."""
        version = Prefetch(
            "assets__producer_version", ProducerVersion.objects.only("digest", "producer")
        )
        rows = self.recorded().select_related("code_version").prefetch_related(version)
        return rows.defer("asset__partition_definition__spec", "code_version__archive")
