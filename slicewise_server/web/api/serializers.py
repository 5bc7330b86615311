"""Fields and base serializers, strict about input and output."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from slicewise.texts import masked_json, masked_text
from slicewise_server.web.storable import require_storable

_ANY_OBJECT = {"type": "object", "additionalProperties": {}}


class MaskedText(serializers.CharField):
    """Text that may hold words of user code, shown without secrets.

    Used for errors, tracebacks and logs; not for keys and selections, by which clients name
    partitions.
    """

    def to_representation(self, value: Any) -> str:
        return masked_text(super().to_representation(value))


@extend_schema_field(_ANY_OBJECT)
class MaskedJSON(serializers.JSONField):
    """A JSON object of people, such as params, shown without values that are named like secrets."""

    def to_representation(self, value: Any) -> Any:
        return masked_json(super().to_representation(value))


class TextField(serializers.CharField):
    """A JSON string; a number is refused."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(f"This must be a string, not {json_kind(data)}.")
        return super().to_internal_value(data)


class WholeNumberField(serializers.IntegerField):
    """A JSON number without a fraction; a string is refused."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError(
                f"This must be a whole number, not {json_kind(data)}."
            )
        return super().to_internal_value(data)


@extend_schema_field(_ANY_OBJECT)
class JSONObject(serializers.JSONField):
    """A JSON object whose names and values the database can hold."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError(f"This must be an object, not {json_kind(data)}.")
        try:
            require_storable(data)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error
        return data


class StrictSerializer(serializers.Serializer[Any]):
    """Base of serializers that refuse unknown fields: a misspelt option is no silent default."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            field_names = sorted(name for name, field in self.fields.items() if not field.read_only)
            unknown = sorted(str(name) for name in data if name not in field_names)
            if unknown:
                sentence = f"There is no such field; there are {', '.join(field_names)}."
                raise serializers.ValidationError({name: [sentence] for name in unknown})
        return super().to_internal_value(data)


class ProblemSerializer(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = serializers.DictField(  # type: ignore[assignment]  # a field, gathered by DRF
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="Sentences per field; the empty name stands for the request as a whole.",
    )


def json_kind(value: Any) -> str:
    """Return the name of a value's JSON type, with the article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"


class UtcDateTimeField(serializers.DateTimeField):
    """An instant, in UTC.

    Django's current time zone is UTC for every request to the API, and is not looked up for each
    value: the lookup takes an eighth of the time of a page of runs.
    """

    timezone = UTC


MODEL_FIELDS = {
    **serializers.ModelSerializer.serializer_field_mapping,
    models.DateTimeField: UtcDateTimeField,
}
