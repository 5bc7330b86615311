"""Beats at chosen moments, and upstream writes between the beats."""

from datetime import datetime, timedelta

from accounts_app.models import User
from assets_app.models import Asset, AssetPartition, Gateway, Materialization
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from tests.scheduling.scheduled_assets import write


def look(now: datetime) -> None:
    """Act as a beat at one moment."""
    handle_ticks(now)
    while process_outbox(now):
        pass
    while requeue_due(now):
        pass


def written(of: Asset, selection: str, when: datetime, gateway: Gateway, user: User) -> None:
    """Write partitions upstream at a moment, and examine downstream partitions just after it."""
    look(when - timedelta(milliseconds=50))
    before = set(Materialization.objects.values_list("pk", flat=True))
    write(of, selection, gateway, user)
    new = Materialization.objects.exclude(pk__in=before)
    AssetPartition.objects.filter(materializations__in=new).update(materialized_at=when)
    new.update(created_at=when)
    look(when + timedelta(milliseconds=50))
