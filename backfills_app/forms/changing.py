"""The form that changes a backfill while the backfill is running."""

from typing import Any

from django import forms

from backfills_app.models import Backfill, BackfillOrder
from slicewise_server.web.forms import ServiceForm
from slicewise_server.web.request_errors import InvalidRequest


class ChangeForm(ServiceForm):
    """The settings that can be changed from now on.

    Hidden fields hold the values that the form showed first.
    """

    max_active_runs = forms.CharField(
        label="Max active runs",
        help_text="Active runs are not affected.",
        show_hidden_initial=True,
    )
    priority = forms.CharField(
        label="Priority",
        help_text="Backfills with a higher number go first. Default 0.",
        show_hidden_initial=True,
    )
    order = forms.ChoiceField(
        choices=BackfillOrder.choices, label="Order", show_hidden_initial=True
    )
    description = forms.CharField(
        required=False,
        label="Description",
        help_text="Optional. The reason for this backfill.",
        show_hidden_initial=True,
    )

    def add_fields(self) -> None:
        """Make browsers show a number pad for numbers."""
        for name in ("max_active_runs", "priority"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"

    @staticmethod
    def present(backfill: Backfill) -> dict[str, Any]:
        """Return the present values of a backfill."""
        return {
            "max_active_runs": backfill.max_active_runs,
            "priority": backfill.group.priority,
            "order": backfill.order,
            "description": backfill.description,
        }

    def changes(self) -> dict[str, Any]:
        """Return the values that differ from the shown values; raise InvalidRequest for text that
        is no number.

        Another person may have changed the other settings since the form was shown.
        """
        typed = {name: self.cleaned_data[name] for name in self.changed_data}
        errors = {}
        for name in {"max_active_runs", "priority"} & set(typed):
            try:
                typed[name] = _whole(typed[name])
            except ValueError:
                errors[name] = f"{typed[name][:60]!r} is not a whole number."
        if errors:
            raise InvalidRequest(errors)
        return typed


def _whole(text: str) -> int:
    if len(text) > 12:
        raise ValueError
    return int(text)
