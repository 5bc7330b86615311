"""Changes that a form makes, as JSON values for the audit trail."""

from typing import Any

from django import forms
from django.db.models import Model

PASSWORD_CHANGED = "set anew"  # noqa: S105  (no password)


def changes_of(form: forms.BaseForm) -> dict[str, Any]:
    """Return each field that a valid form changes, with the values before and after.

    For a password return only that the password changed.
    """
    changes: dict[str, Any] = {}
    for name in form.changed_data:
        if "password" in name:
            changes["password"] = PASSWORD_CHANGED
        elif name in form.fields:
            before = _initial_value(
                form.fields[name], form.get_initial_for_field(form.fields[name], name)
            )
            changes[name] = {"from": before, "to": _json_value(form.cleaned_data.get(name))}
    return changes


def values_of(form: forms.BaseForm) -> dict[str, Any]:
    """Return each field that a valid form sets, except passwords."""
    names = (name for name in form.changed_data if name in form.fields and "password" not in name)
    return {name: _json_value(form.cleaned_data.get(name)) for name in names}


def _initial_value(field: forms.Field, value: Any) -> Any:
    is_one_row = isinstance(field, forms.ModelChoiceField) and not isinstance(
        field, forms.ModelMultipleChoiceField
    )
    if is_one_row and value is not None and not isinstance(value, Model):
        # The initial value of a reference is its key.
        value = field.queryset.filter(pk=value).first() or value  # type: ignore[attr-defined]
    return _json_value(value)


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Model) or not hasattr(value, "__iter__"):
        return str(value)
    return sorted(str(item) for item in value)
