"""The form fields for the params that an asset declares: each by the type of the default."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms

from accounts_app.models import User
from accounts_app.policy import Action, may_for_assets
from assets_app.execution.request.requests import params_given
from assets_app.models import Asset
from backfills_app.services.partitions.frozen_assets import outlets_of
from slicewise.texts import masked_json
from slicewise_server.web.storable import read_json

PREFIX = "param-"
_LONG_TEXT = 60


def declared_params(asset: Asset | None, user: User) -> Mapping[str, Any]:
    """Return the declared params of an asset: with secrets masked, unless the user may backfill the
    asset. The form of other users cannot be submitted, and so submits no mask.
    """
    version = asset.producer.current_version if asset and asset.producer else None
    if asset is None or version is None:
        return {}
    declared: Mapping[str, Any] = version.spec.params
    may_submit = may_for_assets(user, Action.BACKFILL, outlets_of(asset, version))
    return declared if may_submit else masked_json(declared)


def param_fields(declared: Mapping[str, Any]) -> Iterator[tuple[str, forms.Field]]:
    """Yield a field for each param, under names that no other field of a form has."""
    for name, default in declared.items():
        field = _field(default)
        field.label = name
        field.required = False
        yield PREFIX + name, field


def typed_params(declared: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the typed values that differ from the declared ones."""
    typed_by_name = {name: typed[PREFIX + name] for name in declared if PREFIX + name in typed}
    return params_given(declared, typed_by_name)


def shown_params(declared: Mapping[str, Any], given_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields: given values, otherwise the declared ones."""
    return {
        PREFIX + name: _shown(given_values.get(name, default), default)
        for name, default in declared.items()
    }


class WholeField(forms.CharField):
    """A whole number of any size; an empty text stands for the declared number."""

    def __init__(self, default: int) -> None:
        super().__init__(widget=forms.NumberInput(attrs={"step": "1"}))
        self.default = default

    def clean(self, value: Any) -> int:
        """Return the number, as Python reads the text."""
        text = (super().clean(value) or "").strip()
        if not text:
            return self.default
        try:
            return _whole(read_json(text))
        except (TypeError, ValueError):
            raise forms.ValidationError(f"{text[:60]!r} is not a whole number.") from None


class NumberField(forms.CharField):
    """A number with a fraction; an empty text stands for the declared number."""

    def __init__(self, default: float) -> None:
        super().__init__(widget=forms.NumberInput(attrs={"step": "any"}))
        self.default = default

    def clean(self, value: Any) -> float:
        """Return the number; raise ValidationError unless the text is a finite number."""
        text = (super().clean(value) or "").strip()
        if not text:
            return self.default
        try:
            return float(read_json(text))
        except (TypeError, ValueError):
            raise forms.ValidationError(f"{text[:60]!r} is not a number.") from None


class TextField(forms.CharField):
    """Text as typed, blanks included; an empty field is the empty text."""

    def __init__(self, default: str) -> None:
        is_long = "\n" in default or len(default) > _LONG_TEXT
        widget = forms.Textarea(attrs={"rows": 3}) if is_long else forms.TextInput()
        super().__init__(widget=widget, strip=False)

    def to_python(self, value: Any) -> Any:
        """Return the text with plain line ends: browsers send others."""
        text: str = super().to_python(value) or ""
        return text.replace("\r\n", "\n")


class YesNoField(forms.TypedChoiceField):
    """True or false, as a choice and not a box, since browsers do not send an empty box."""

    def __init__(self) -> None:
        super().__init__(
            choices=(("true", "true"), ("false", "false")), coerce=lambda text: text == "true"
        )


class JsonField(forms.CharField):
    """Any value as JSON: lists, objects, and params that are null by default."""

    def __init__(self, default: Any) -> None:
        super().__init__(
            widget=forms.Textarea(attrs={"rows": min(1 + len(_text(default)) // 40, 6)}),
            help_text="JSON value: text in quotes, null for nothing.",
        )
        self.default = default

    def clean(self, value: Any) -> Any:
        """Return the value of the JSON text, or the declared value for an empty text."""
        text = (super().clean(value) or "").strip()
        try:
            return read_json(text) if text else self.default
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


def _field(default: Any) -> forms.Field:
    match default:
        case bool():
            return YesNoField()
        case int():
            return WholeField(default)
        case float():
            return NumberField(default)
        case str():
            return TextField(default)
        case _:
            return JsonField(default)


def _shown(value: Any, default: Any) -> Any:
    """Return the value as the field of that default shows a value."""
    match default:
        case bool() if isinstance(value, bool):
            return "true" if value else "false"
        case str() if isinstance(value, str):
            return value
        case _:
            return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value
