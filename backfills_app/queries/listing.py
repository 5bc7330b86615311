"""Querysets of backfills for lists, pages and programs."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Prefetch

from assets_app.models import ProducerVersion

if TYPE_CHECKING:
    from backfills_app.models import Backfill  # noqa: F401


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """A queryset of backfills with the related rows that lists and pages show."""

    def listed(self) -> "BackfillQuerySet":
        """Select backfills that are not deleted, with the related rows of a line in a list: two
        queries.
        """
        return self.recorded().filter(deleted=False)

    def recorded(self) -> "BackfillQuerySet":
        """Select all backfills, deleted ones too, with their assets and counts: two queries."""
        return (
            self.select_related("asset__partition_definition", "submitted_by", "group")
            .defer("asset__partition_definition__spec")
            .prefetch_related("assets__asset")
        )

    def choosing(self, name: str) -> "BackfillQuerySet":
        """Select backfills for which the asset was chosen, alone or among several."""
        # The relation is used by name, since models import this module.
        chosen = self.model.objects.filter(assets__asset__name=name, assets__role="chosen")
        return self.filter(pk__in=chosen.values("pk"))

    def told(self) -> "BackfillQuerySet":
        """Select backfills with their assets, counts and versions of the code: three queries."""
        version = Prefetch(
            "assets__producer_version", ProducerVersion.objects.only("digest", "producer")
        )
        rows = self.recorded().select_related("code_version").prefetch_related(version)
        return rows.defer("asset__partition_definition__spec", "code_version__archive")
