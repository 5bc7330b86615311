"""Serializers of events."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from slicewise.texts import masked_json
from slicewise_server.events.models import Event, EventKind
from slicewise_server.web.api.serializers import MODEL_FIELDS, MaskedText


class EventSerializer(serializers.ModelSerializer[Event]):
    """One event. `detail` has further facts of the kind; the guide of alerts lists them."""

    serializer_field_mapping = MODEL_FIELDS

    id = serializers.IntegerField(
        source="position", help_text="Position in the feed. A position is never used again."
    )
    kind = serializers.ChoiceField(choices=EventKind.choices)
    run = serializers.IntegerField(source="run_id", allow_null=True)
    backfill = serializers.IntegerField(source="backfill_id", allow_null=True)
    error = MaskedText()
    detail = serializers.SerializerMethodField()

    class Meta:
        model = Event
        fields: tuple[str, ...] = (
            *("id", "kind", "at", "asset", "run", "backfill", "bundle", "worker", "error"),
            "detail",
        )
        read_only_fields: tuple[str, ...] = fields

    @extend_schema_field(serializers.DictField())
    def get_detail(self, event: Event) -> Any:
        return masked_json(event.detail)


class EventPageSerializer(serializers.Serializer[Any]):
    """Events after a position, and the position to read on from."""

    cursor = serializers.CharField(
        help_text="The value of `after` for the next page. An empty page has a cursor too."
    )
    results = EventSerializer(many=True)
