"""What people type on the pages of assets. What is right or wrong is said by the services."""

import json
from typing import Any

from django import forms

from accounts_app.errors import InvalidRequest
from accounts_app.storable import read_json_object

_SELECTION_HELP = "A key, a range from..to (inclusive), a month or a year; separate with commas."


class ServiceForm(forms.Form):
    """A form whose errors come from a service: sentences per field, the same as the API's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_fields()
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", _look_of(field.widget))
            if isinstance(field.widget, forms.TextInput):
                field.widget.attrs.setdefault("autocomplete", "off")
            if name in self.errors_of_data:
                field.widget.attrs["class"] += " is-invalid"

    def add_fields(self) -> None:
        """Add fields that depend on what the form is about, before anything is read."""

    @property
    def errors_of_data(self) -> Any:
        """Errors found so far, none for a form that was not sent."""
        return self.errors if self.is_bound else {}

    def refuse(self, refused: InvalidRequest) -> None:
        """Show what a service said, at the fields it names; what names none of them, on top."""
        for field, said in refused.errors.items():
            at = field if field in self.fields else None
            for sentence in said:
                self.add_error(at, sentence)
            if at:
                self.fields[at].widget.attrs["class"] += " is-invalid"
                self.fields[at].widget.attrs["aria-invalid"] = "true"


def _look_of(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


class ParamsField(forms.CharField):
    """A JSON object, as text: params, or facts to keep."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> Any:
        """Return the object; empty text is no params."""
        text = super().to_python(value) or ""
        try:
            return read_json_object(text) if text.strip() else {}
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare as text."""
        return bool((initial or "") != (data or ""))


class MaterializeForm(ServiceForm):
    """Which partitions to make now, and how."""

    selection = forms.CharField(
        required=False,
        label="Partitions",
        help_text=_SELECTION_HELP,
    )
    strategy = forms.CharField(
        required=False,
        label="Run granularity",
        help_text="partition: one run per partition; range: single run; a number: up to that many"
        " partitions per run. Empty: default of the asset.",
    )
    params = ParamsField(required=False, label="Params", help_text="JSON object.")

    def __init__(
        self, *args: Any, partitioned: bool, params: dict[str, Any], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["params"].widget.attrs["rows"] = 4
        if not partitioned:
            del self.fields["selection"]
            del self.fields["strategy"]
        if not params:
            del self.fields["params"]
        elif not self.is_bound:
            self.initial["params"] = json.dumps(params, indent=2)


class ReportWriteForm(ServiceForm):
    """Which partitions something else has written, and what is known of it."""

    selection = forms.CharField(
        required=False,
        label="Partitions",
        help_text=_SELECTION_HELP,
    )
    rows = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        label="Row count",
        help_text="Optional, single partition only.",
    )
    bytes = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        label="Size in bytes",
        help_text="Optional, single partition only.",
    )
    metadata = ParamsField(
        required=False, label="Metadata", help_text="JSON object, kept with the record."
    )

    def __init__(self, *args: Any, partitioned: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["metadata"].widget.attrs["rows"] = 3
        if not partitioned:
            del self.fields["selection"]
