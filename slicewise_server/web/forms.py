"""The base of forms on pages: the service validates the values, and the form shows the errors."""

import json
from typing import Any

from django import forms

from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import read_json_object


class ServiceForm(forms.Form):
    """A form whose errors come from a service: sentences per field, the same as in the API."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_fields()
        style_fields(self)
        for name, field in self.fields.items():
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


def style_fields(form: forms.BaseForm) -> None:
    """Give each field of a form the class of the look, unless the field has a class."""
    for field in form.fields.values():
        field.widget.attrs.setdefault("class", _css_class(field.widget))


def _css_class(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


class ParamsField(forms.CharField):
    """A JSON object, as text: params of runs, or metadata of a report."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        """Return an object as JSON, and a typed text unchanged."""
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)

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
