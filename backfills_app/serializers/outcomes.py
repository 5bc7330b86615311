"""The reasons why partitions of a backfill were not materialized, as JSON: failures and skips."""

from typing import Any

from rest_framework import serializers

from assets_app.models import SkipReason
from backfills_app.models import Backfill
from backfills_app.queries.failures import failures_of
from backfills_app.serializers.plans import UpstreamGapSerializer
from backfills_app.services.partitions.skipped_partitions import skips_of
from slicewise.texts import masked_text


class FailedRunSerializer(serializers.Serializer[Any]):
    """One of the failed runs with the same error."""

    run = serializers.IntegerField()
    selection = serializers.CharField()


class FailureSerializer(serializers.Serializer[Any]):
    """Failed runs with the same error, apart from numbers and dates."""

    error = serializers.CharField()
    runs = serializers.IntegerField()
    examples = FailedRunSerializer(many=True, help_text="The latest runs with this error.")


class OtherBackfillSerializer(serializers.Serializer[Any]):
    """A backfill whose runs hold, or held last, partitions that this backfill skipped."""

    backfill = serializers.IntegerField()
    name = serializers.CharField()


class SkippedSerializer(serializers.Serializer[Any]):
    """Partitions of an asset that were skipped for one reason."""

    asset = serializers.CharField()
    reason = serializers.ChoiceField(choices=SkipReason.choices)
    partitions = serializers.IntegerField()
    others = OtherBackfillSerializer(
        many=True,
        help_text="For `in_flight`: some of the backfills whose runs hold the partitions, or held"
        " the partitions last; these runs may have failed.",
    )
    upstream_gaps = UpstreamGapSerializer(
        many=True,
        help_text="For `upstream_nonexistent`: the nonexistent partitions, by upstream asset.",
    )
    hint = serializers.CharField(
        help_text="Advice if the definition of an upstream asset has changed since; else empty."
    )


class OutcomeSerializer(serializers.Serializer[Any]):
    """The reasons why partitions of a backfill were not materialized."""

    failures = FailureSerializer(many=True)
    skipped = SkippedSerializer(many=True)


def outcome_of(backfill: Backfill) -> dict[str, Any]:
    """Return the failures grouped by error, and the skips by reason, as JSON."""
    failures = [
        {
            "error": masked_text(failure.error),
            "runs": failure.number,
            "examples": [{"run": run, "selection": text} for run, text in failure.examples],
        }
        for failure in failures_of(backfill)
    ]
    outcome = OutcomeSerializer({"failures": failures, "skipped": _skips(backfill)})
    return dict(outcome.data)


def _skips(backfill: Backfill) -> list[dict[str, Any]]:
    return [
        {
            "asset": skip.asset,
            "reason": skip.reason,
            "partitions": skip.number,
            "others": [{"backfill": pk, "name": name} for pk, name in skip.others],
            "upstream_gaps": skip.upstream_gaps,
            "hint": skip.hint,
        }
        for skip in skips_of(backfill)
    ]
