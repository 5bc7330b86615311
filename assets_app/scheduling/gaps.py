"""What does not exist of what a partition needs upstream."""

from datetime import datetime

from django.db.models import Q

from assets_app.models import Asset, AssetDependency
from assets_app.scheduling.readiness import needed_by_key, reads_whatever_there_is
from partitions_app.rules import UpstreamGap


def gaps_of(asset: Asset, key: str, now: datetime) -> list[UpstreamGap]:
    """Return the upstream partitions that one partition needs and that do not exist, or that are
    excluded, by upstream asset: one statement, and one for each asset of which all of time is
    needed.

    Nothing for a key that the asset's definition does not have any more.
    """
    edges = AssetDependency.objects.filter(Q(inlet=True) | Q(scheduling=True), downstream=asset)
    edges = edges.select_related(
        "upstream__partition_definition", "downstream__partition_definition"
    )
    found = []
    for edge in edges.order_by("pk"):
        if reads_whatever_there_is(edge):
            continue
        try:
            needed = needed_by_key(edge, key, now)
        except ValueError:
            return []
        if needed.blocking or needed.excluded:
            name, excluded = edge.upstream.name, needed.excluded.partitions
            found.append(UpstreamGap(name, needed.blocking, excluded))
    return found
