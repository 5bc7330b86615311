"""Serializers of runtime partitions' keys."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from slicewise_server.web.api.serializers import StrictSerializer, TextField, json_kind


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "integer"}]})
class KeyField(serializers.Field[Any, Any, Any, Any]):
    """A plain key: a text or a whole number."""

    def to_internal_value(self, data: Any) -> str | int:
        if isinstance(data, bool) or not isinstance(data, str | int):
            raise serializers.ValidationError(
                f"This must be a string or a whole number, not {json_kind(data)}."
            )
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class KeysSerializer(StrictSerializer):
    """Keys to add, as values."""

    keys = serializers.ListField(child=KeyField())


class KeyTextsSerializer(StrictSerializer):
    """Keys to remove, by the texts in lists of partitions."""

    keys = serializers.ListField(child=TextField(max_length=1000))


class AddedKeysSerializer(serializers.Serializer[Any]):
    """Texts of the keys that were added or removed."""

    keys = serializers.ListField(child=serializers.CharField())
