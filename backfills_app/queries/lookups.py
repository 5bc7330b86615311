"""Backfills by number, for all doors."""

from django.http import Http404

from backfills_app.models import Backfill


def backfill_numbered(pk: int) -> Backfill:
    """Return the backfill of this number, deleted or not; raise Http404 with a sentence without."""
    backfill = Backfill.objects.told().filter(pk=pk).first()
    if backfill is None:
        raise Http404(f"There is no backfill {pk}.")
    return backfill
