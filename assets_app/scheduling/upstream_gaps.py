"""Upstream partitions that a partition needs and that do not exist."""

from datetime import datetime

from django.db.models import Q

from assets_app.models import Asset, AssetDependency
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from partitions_app.rules import UpstreamGap


def upstream_gaps_of(asset: Asset, key: str, now: datetime) -> list[UpstreamGap]:
    """Return the upstream partitions that one partition needs and that do not exist or are
    excluded, by upstream asset.

    One statement, and one more for each asset of which all of time is needed. The result is empty
    for a key that the asset's definition no longer has.
    """
    dependencies = AssetDependency.objects.filter(
        Q(inlet=True) | Q(scheduling=True), downstream=asset
    )
    dependencies = dependencies.select_related(
        "upstream__partition_definition", "downstream__partition_definition"
    )
    upstream_gaps = []
    for dependency in dependencies.order_by("pk"):
        edge = edge_without_bounds(dependency)
        if edge.reads_whatever_exists:
            continue
        try:
            bounded_edge = with_time_on_record(edge, dependency.upstream, now)
            needed = bounded_edge.needed_by_texts([key])
        except ValueError:
            return []
        if needed.blocking or needed.excluded:
            name, excluded = dependency.upstream.name, needed.excluded.partitions
            upstream_gaps.append(UpstreamGap(name, needed.blocking, excluded))
    return upstream_gaps
