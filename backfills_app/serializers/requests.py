"""Requests about backfills as JSON: to create one, to change one, to apply an action to several."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from assets_app.serializers import StrategyField
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.control.bulk import ACTIONS
from slicewise_server.web.api.serializers import (
    JSONObject,
    StrictSerializer,
    TextField,
    WholeNumberField,
    json_kind,
)

LARGEST_ID = 2**63 - 1
_MOST_NAMES = 1000
_LONGEST_SELECTION = 100_000


def _choice_field(choices: Sequence[tuple[str, str]], **options: Any) -> serializers.ChoiceField:
    """Return a field for one of several words; the error of the field names all words."""
    words = ", ".join(word for word, _ in choices)
    messages: dict[str, Any] = {"invalid_choice": f"{{input!r}} is none of {words}."}
    return serializers.ChoiceField(choices=choices, error_messages=messages, **options)


class YesNo(serializers.BooleanField):
    """True or false; words and numbers are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError(f"This must be true or false, not {json_kind(data)}.")
        return data


@extend_schema_field(
    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": _MOST_NAMES}
)
class NamesField(serializers.Field[Any, Any, Any, Any]):
    """Names of assets; an error in one name is an error of the whole field."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list):
            raise serializers.ValidationError(
                f"This must be a list of names, not {json_kind(data)}."
            )
        if not data:
            raise serializers.ValidationError("Name an asset.")
        return _names(data)

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": ["none", "all"]},
            {"type": "array", "items": {"type": "string"}},
        ]
    }
)
class DownstreamField(serializers.Field[Any, Any, Any, Any]):
    """``none``, ``all``, or names of assets."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            return TextField(max_length=_LONGEST_SELECTION, allow_blank=True).run_validation(data)
        if not isinstance(data, list):
            raise serializers.ValidationError(
                f"This must be none, all, or a list of names, not {json_kind(data)}."
            )
        if len(data) > _MOST_NAMES:
            raise serializers.ValidationError(f"At most {_MOST_NAMES:,} names, not {len(data):,}.")
        name = TextField(max_length=250)
        return [name.run_validation(item) for item in data]

    def to_representation(self, value: Any) -> Any:
        return value


def _names(data: list[Any]) -> list[str]:
    if len(data) > _MOST_NAMES:
        raise serializers.ValidationError(f"At most {_MOST_NAMES:,} names, not {len(data):,}.")
    name = TextField(max_length=250)
    return [name.run_validation(item) for item in data]


class BackfillTermsSerializer(StrictSerializer):
    """The partitions, and how to materialize the partitions: ``start`` and ``end``, both included,
    or a ``selection``.
    """

    start = TextField(required=False, allow_blank=True, max_length=1000)
    end = TextField(required=False, allow_blank=True, max_length=1000)
    selection = TextField(
        required=False,
        allow_blank=True,
        max_length=_LONGEST_SELECTION,
        help_text="Text of the selection grammar, also with segments, in place of `start` and"
        " `end`.",
    )
    description = TextField(required=False, allow_blank=True)
    params = JSONObject(required=False)
    max_active_runs = WholeNumberField(
        required=False,
        help_text="Number of runs of the backfill at the same time, 1 to 1,000; 3 by default.",
    )
    order = _choice_field(BackfillOrder.choices, required=False)
    strategy = StrategyField(required=False, allow_null=True)
    allow_holes = YesNo(
        required=False,
        help_text="Whether a run may span partitions that the run does not materialize.",
    )
    existing = _choice_field(ExistingPolicy.choices, required=False)
    upstream = YesNo(
        required=False,
        help_text="Whether to materialize all upstream assets of the chosen assets as well.",
    )
    downstream = DownstreamField(
        required=False,
        help_text="Downstream assets to materialize as well: `none`, `all`, or a list of names. By"
        " default `none`, and for a clone the choice of the original.",
    )
    code_version = TextField(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="Number, or at least four first digits of the digest, of a version of the"
        " asset's bundle.",
    )
    start_at = TextField(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="Earliest start of a run; in the time zone of the asset if the text names no"
        " time zone.",
    )


class BackfillRequestSerializer(BackfillTermsSerializer):
    """The assets to backfill: one of ``asset``, ``assets``, ``asset_group`` and ``asset_tag``."""

    asset = TextField(required=False, max_length=250)
    assets = NamesField(
        required=False,
        help_text="Names of several assets. The backfill materializes the partitions of each"
        " asset in the period.",
    )
    asset_group = TextField(
        required=False,
        max_length=200,
        help_text="Group: all assets of the group that Slicewise materializes.",
    )
    asset_tag = TextField(
        required=False,
        max_length=1000,
        help_text="Tag: all assets with the tag that Slicewise materializes.",
    )


class BackfillCloneSerializer(BackfillTermsSerializer):
    """The fields that differ from the backfill that is cloned."""


class ChangeSerializer(StrictSerializer):
    """The settings to change from now on."""

    max_active_runs = WholeNumberField(required=False)
    priority = WholeNumberField(
        required=False,
        help_text="Priority: a backfill with a higher number goes first; 0 by default.",
    )
    order = _choice_field(BackfillOrder.choices, required=False)
    description = TextField(required=False, allow_blank=True)


class BulkSerializer(StrictSerializer):
    """An action, and the backfills to which the action is applied."""

    action = _choice_field([(word, word) for word in ACTIONS])
    backfills = serializers.ListField(
        child=WholeNumberField(min_value=1, max_value=LARGEST_ID), allow_empty=False
    )
