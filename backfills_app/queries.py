"""Shapes in which backfills are read."""

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from backfills_app.models import Backfill  # noqa: F401


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """Backfills, with what lists and pages show of them."""

    def listed(self) -> "BackfillQuerySet":
        """Those not deleted, newest first, with their assets and counts: two statements for a page."""
        return (
            self.filter(deleted=False)
            .select_related("asset", "submitted_by", "group")
            .prefetch_related("assets__asset")
        )
