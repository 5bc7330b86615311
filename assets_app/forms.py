"""Forms on the pages of assets. Services validate the values."""

import json
from typing import Any

from django import forms

from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import read_json_object

_SELECTION_HELP = "A key, a range from..to (inclusive), a month or a year; separate with commas."


class ServiceForm(forms.Form):
    """A form whose errors come from a service: sentences per field, the same as in the API."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_fields()
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", _css_class(field.widget))
            if isinstance(field.widget, forms.TextInput):
                field.widget.attrs.setdefault("autocomplete", "off")
            if name in self.errors_of_data:
                field.widget.attrs["class"] += " is-invalid"

    def add_fields(self) -> None:
        """Add fields that depend on the subject of the form, before values are read."""

    @property
    def errors_of_data(self) -> Any:
        """Errors found so far; none for a form that was not sent."""
        return self.errors if self.is_bound else {}

    def refuse(self, refused: InvalidRequest) -> None:
        """Show the errors of a service at the named fields, and all other errors on top."""
        for field, sentences in refused.errors.items():
            form_field = field if field in self.fields else None
            for sentence in sentences:
                self.add_error(form_field, sentence)
            if form_field:
                self.fields[form_field].widget.attrs["class"] += " is-invalid"
                self.fields[form_field].widget.attrs["aria-invalid"] = "true"


def _css_class(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


class ParamsField(forms.CharField):
    """A JSON object, as text: params of runs, or metadata of a report."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> Any:
        """Return the object; empty text gives an empty object."""
        text = super().to_python(value) or ""
        try:
            return read_json_object(text) if text.strip() else {}
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare initial value and data as text."""
        return bool((initial or "") != (data or ""))


class MaterializeForm(ServiceForm):
    """The partitions to materialize now, with strategy and params."""

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
    """The partitions that another program has written, with row count, size and metadata."""

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
