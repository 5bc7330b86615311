"""Receivers of signals, which write events in the transaction of the sender."""

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from assets_app.models import LeftOut
from assets_app.signals import bundle_synced, partitions_left_out, runs_ended
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


@receiver(partitions_left_out)
def receive_left_out(left_out: LeftOut, **_: Any) -> None:
    writing.write_left_out(left_out)
