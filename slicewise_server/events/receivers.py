"""Receivers of signals, which write events in the transaction of the sender.

Writers are imported when a signal arrives: a command that only reads starts without the writers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from assets_app.signals import bundle_synced, partitions_left_out, runs_ended
from backfills_app.signals import backfill_ended

if TYPE_CHECKING:
    from assets_app.models import LeftOut
    from backfills_app.models import Backfill


@receiver(runs_ended)
def receive_ended_runs(run_ids: Sequence[int], **_: Any) -> None:
    from slicewise_server.events.writing import write_ended_runs

    write_ended_runs(run_ids)


@receiver(backfill_ended)
def receive_ended_backfill(backfill: "Backfill", **_: Any) -> None:
    from slicewise_server.events.writing import write_ended_backfill

    write_ended_backfill(backfill)


@receiver(bundle_synced)
def receive_bundle(
    name: str, errors_before: Sequence[str], errors: Sequence[str], **_: Any
) -> None:
    if list(errors_before) != list(errors):
        from slicewise_server.events.writing import write_bundle

        write_bundle(name, errors=errors)


@receiver(partitions_left_out)
def receive_left_out(left_out: "LeftOut", **_: Any) -> None:
    from slicewise_server.events.writing import write_left_out

    write_left_out(left_out)
