"""What people type on the pages of backfills. What is right or wrong is said by the services."""

from backfills_app.forms.changing import ChangeForm
from backfills_app.forms.trigger import BackfillForm

__all__ = ["BackfillForm", "ChangeForm"]
