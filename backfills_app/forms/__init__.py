"""The forms on the pages of backfills. The services decide which values are valid."""

from backfills_app.forms.changing import ChangeForm
from backfills_app.forms.trigger import BackfillForm

__all__ = ["BackfillForm", "ChangeForm"]
