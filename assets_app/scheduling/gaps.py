"""Upstream partitions that a partition needs and that do not exist."""

from datetime import datetime

from django.db.models import Q

from assets_app.models import Asset, AssetDependency
from assets_app.scheduling.readiness import needed_by_key, reads_whatever_there_is
from partitions_app.rules import UpstreamGap


def gaps_of(asset: Asset, key: str, now: datetime) -> list[UpstreamGap]:
    """Return the upstream partitions that one partition needs and that do not exist or are
    excluded, by upstream asset.

    One statement, and one more for each asset of which all of time is needed. The result is empty
    for a key that the asset's definition no longer has.
    """
    edges = AssetDependency.objects.filter(Q(inlet=True) | Q(scheduling=True), downstream=asset)
    edges = edges.select_related(
        "upstream__partition_definition", "downstream__partition_definition"
    )
    gaps = []
    for edge in edges.order_by("pk"):
        if reads_whatever_there_is(edge):
            continue
        try:
            needed = needed_by_key(edge, key, now)
        except ValueError:
            return []
        if needed.blocking or needed.excluded:
            name, excluded = edge.upstream.name, needed.excluded.partitions
            gaps.append(UpstreamGap(name, needed.blocking, excluded))
    return gaps
