"""Serializers of channels, alert rules and deliveries."""

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from slicewise_server.alerts.models import (
    VARIABLE_FORM,
    VARIABLE_PATTERN,
    AlertRule,
    Channel,
    ChannelKind,
    Delivery,
)
from slicewise_server.events.models import EventKind
from slicewise_server.web.api.serializers import (
    MODEL_FIELDS,
    MaskedText,
    StrictSerializer,
    TextField,
    WholeNumberField,
)

MOST_NAMES = 1_000
LONGEST_ADDRESS = 2_000
# Names are parts of addresses.
NAME_PATTERN = r"\A[^/\x00-\x1f\x7f-\x9f]+\Z"
NAME_FORM = "A name holds neither / nor control characters."
named = RegexValidator(NAME_PATTERN, NAME_FORM)
named_variable = RegexValidator(VARIABLE_PATTERN, VARIABLE_FORM)

NO_CHANNEL: dict[str, Any] = {"does_not_exist": "There is no channel {value!r}."}
NO_KIND: dict[str, Any] = {
    "invalid_choice": f"{{input!r}} is no kind; there are {', '.join(EventKind.values)}."
}


class ChannelSerializer(serializers.ModelSerializer[Channel]):
    """A channel, without its secrets."""

    serializer_field_mapping = MODEL_FIELDS

    address = serializers.CharField(
        source="shown_address", help_text="The address without secrets, or `$NAME` of a variable."
    )
    error = MaskedText(help_text="The last failure; empty after a success.")

    class Meta:
        model = Channel
        fields: tuple[str, ...] = (
            *("name", "kind", "address", "active", "error", "failures", "retry_at", "created_at"),
        )
        read_only_fields: tuple[str, ...] = fields


class NewChannelSerializer(ChannelSerializer):
    """A new channel. The signing key of a webhook is shown this once."""

    signing_key = serializers.CharField(required=False)

    class Meta(ChannelSerializer.Meta):
        fields = (*ChannelSerializer.Meta.fields, "signing_key")
        read_only_fields = fields


class ChannelFieldsSerializer(StrictSerializer):
    """The fields of a new channel: `address`, or the `variable` that holds the address."""

    name = TextField(max_length=100, validators=[named])
    kind = serializers.ChoiceField(choices=ChannelKind.choices)
    address = TextField(max_length=LONGEST_ADDRESS, required=False)
    variable = TextField(max_length=100, required=False, validators=[named_variable])


class ChannelChangeSerializer(StrictSerializer):
    """The fields of a channel that can change."""

    address = TextField(max_length=LONGEST_ADDRESS, required=False)
    variable = TextField(max_length=100, required=False, validators=[named_variable])
    active = serializers.BooleanField(required=False)


class NamesField(serializers.ListField):
    """A list of names."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            child=TextField(max_length=250), max_length=MOST_NAMES, required=False, **options
        )


def _listed(help_text: str) -> serializers.ListField:
    """Return a field that shows a list of names."""
    return serializers.ListField(child=serializers.CharField(), read_only=True, help_text=help_text)


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    """An alert rule."""

    serializer_field_mapping = MODEL_FIELDS

    channel = serializers.CharField(source="channel.name")
    kinds = _listed("Kinds of events; all kinds if empty.")
    assets = _listed("Names of assets.")
    groups = _listed("Groups of assets.")
    tags = _listed("Tags of assets.")
    owners = _listed("Owners of assets.")

    class Meta:
        model = AlertRule
        fields: tuple[str, ...] = (
            *("name", "channel", "kinds", "assets", "groups", "tags", "owners"),
            *("gather_seconds", "backfill_runs", "active", "declared", "created_at"),
        )
        read_only_fields: tuple[str, ...] = fields


class AlertRuleChangeSerializer(StrictSerializer):
    """The fields of an alert rule that can change."""

    channel = serializers.SlugRelatedField(
        slug_field="name", queryset=Channel.objects.all(), error_messages=NO_CHANNEL, required=False
    )
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=EventKind.choices, error_messages=NO_KIND),
        max_length=len(EventKind),
        required=False,
        help_text=f"{', '.join(EventKind.values)}. An empty list means all kinds.",
    )
    assets = NamesField(help_text="Names of assets.")
    groups = NamesField(help_text="Groups of assets.")
    tags = NamesField(help_text="Tags of assets.")
    owners = NamesField(help_text="Owners of assets.")
    gather_seconds = WholeNumberField(
        required=False,
        help_text="Events within this number of seconds become one message; 0 sends each event"
        " alone. A webhook gets each event alone.",
    )
    backfill_runs = serializers.BooleanField(
        required=False,
        help_text="Whether failed runs, failed validations and validation warnings of backfills"
        " cause messages; else `backfill_failed` and `backfill_canceled` report the failures, and"
        " no message reports the warnings.",
    )
    active = serializers.BooleanField(
        required=False,
        help_text="False pauses the rule. The rule never sends the events of the pause.",
    )

    def validate_kinds(self, kinds: list[str]) -> list[str]:
        """Refuse a kind that is there twice."""
        if len(set(kinds)) < len(kinds):
            raise serializers.ValidationError("Name each kind once.")
        return kinds


class AlertRuleFieldsSerializer(AlertRuleChangeSerializer):
    """The fields of a new alert rule."""

    name = TextField(max_length=100, validators=[named])
    channel = serializers.SlugRelatedField(
        slug_field="name", queryset=Channel.objects.all(), error_messages=NO_CHANNEL
    )


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A delivery: one message to one channel, under an id that never changes."""

    serializer_field_mapping = MODEL_FIELDS

    id = serializers.UUIDField(source="key")
    channel = serializers.CharField(source="channel.name")
    rule = serializers.CharField(source="rule_name", help_text="Empty for a test message.")
    title = serializers.SerializerMethodField()
    answer = MaskedText()

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            *("id", "channel", "rule", "state", "title", "event_count", "created_at", "send_at"),
            *("tries", "status", "answer", "delivered_at"),
        )
        read_only_fields: tuple[str, ...] = fields

    @extend_schema_field(serializers.CharField())
    def get_title(self, delivery: Delivery) -> str:
        return str((delivery.body or {}).get("title", ""))
