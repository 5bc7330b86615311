"""The reason why a run cannot be retried by itself, as the apps that count the run answer."""

from typing import Any

from assets_app.models import Run, Trigger
from assets_app.signals import retry_considered


def objection_to_retry(run: Run) -> str:
    """Return a sentence on why the run cannot be retried, or an empty text.

    The answer costs statements for a run of a backfill only. A retry decides again.
    """
    if run.trigger != Trigger.BACKFILL:
        return ""
    answer: Any
    for _, answer in retry_considered.send(sender=None, run_ids=[run.pk]):
        if objection := (answer or {}).get(run.pk, ""):
            return str(objection)
    return ""
