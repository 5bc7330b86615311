"""Limits of one backfill: how many assets and partitions the backfill may have."""

from django.conf import settings

from slicewise_server.web.request_errors import InvalidRequest


def refuse_too_many_assets(number: int, field: str) -> None:
    """Raise InvalidRequest for more assets than one backfill may have."""
    _refuse_above("MAX_ASSETS_PER_BACKFILL", number, "assets", field)


def refuse_too_many_partitions(number: int, field: str) -> None:
    """Raise InvalidRequest for more partitions than one backfill may have, over all its assets."""
    _refuse_above("MAX_PARTITIONS_PER_BACKFILL", number, "partitions", field)


def _refuse_above(setting: str, number: int, noun: str, field: str) -> None:
    limit = getattr(settings, setting)
    if number > limit:
        raise InvalidRequest(
            {
                field: f"{number:,} {noun} are more than one backfill may have"
                f" ({limit:,}, setting {setting})."
            }
        )
