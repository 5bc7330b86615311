"""Lookups of backfills by number, for pages, API and command line."""

from django.http import Http404

from backfills_app.models import Backfill


def backfill_numbered(pk: int) -> Backfill:
    """Return the backfill with this number, deleted or not; raise Http404 with a sentence if none
    has it.
    """
    backfill = Backfill.objects.with_code_versions().filter(pk=pk).first()
    if backfill is None:
        raise Http404(f"There is no backfill {pk}.")
    return backfill
