"""Partitions that a schedule by assets missed while its asset was paused, as the list has them."""

from datetime import datetime, timedelta

from assets_app.models import Asset, AssetDependency, Materialization, Outbox
from assets_app.queries.clock import database_now
from assets_app.scheduling.missed import missed_by


def missed(of: Asset, now: datetime | None = None) -> str | None:
    """Return the selection of an asset's missed partitions, by the present rows."""
    missed_keys = missed_by(Asset.objects.get(pk=of.pk), now or database_now())
    return None if missed_keys is None else missed_keys.selection


def without_mapping(of: Asset) -> None:
    """Make the mapping of an asset unreadable, as if a package were no longer installed."""
    AssetDependency.objects.filter(downstream=of).update(mapping={"kind": "gone"})


def written_before(of: Asset, day: str, earlier: timedelta) -> None:
    """Move the writes of a day, with the entries in the outbox, to an earlier time."""
    when = database_now() - earlier
    rows = Materialization.objects.filter(partition__asset=of, partition__key__startswith=day)
    Outbox.objects.filter(run__in=rows.values("run")).update(created_at=when)
    rows.update(created_at=when)
