"""Receivers of signals, which write events in the transaction of the sender."""

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from assets_app.models import ScheduleTruncation
from assets_app.signals import (
    bundle_synced,
    partitions_overdue,
    runs_ended,
    schedule_truncated,
)
from backfills_app.models import Backfill
from backfills_app.signals import backfill_ended
from slicewise_server.events import writing


@receiver(runs_ended)
def receive_ended_runs(run_ids: Sequence[int], **_: Any) -> None:
    writing.write_ended_runs(run_ids)


@receiver(backfill_ended)
def receive_ended_backfill(backfill: Backfill, **_: Any) -> None:
    writing.write_ended_backfill(backfill)


@receiver(bundle_synced)
def receive_bundle(
    name: str, errors_before: Sequence[str], errors: Sequence[str], **_: Any
) -> None:
    if list(errors_before) != list(errors):
        writing.write_bundle(name, errors=errors)


@receiver(partitions_overdue)
def receive_overdue(late_ids: Sequence[int], **_: Any) -> None:
    writing.write_overdue(late_ids)


@receiver(schedule_truncated)
def receive_truncation(truncation: ScheduleTruncation, **_: Any) -> None:
    writing.write_truncation(truncation)
