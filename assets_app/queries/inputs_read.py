"""The inputs of a materialization: the upstream partitions and versions that its attempt read."""

from collections.abc import Iterator

from django.db.models import Case, F, Q, When

from assets_app.models import (
    AssetDependency,
    AssetPartition,
    AttemptInput,
    Materialization,
)
from assets_app.queries.clock import database_now
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from assets_app.queries.keys import still_known

# A partition that needs more is taken to need all that the run has read.
_MOST_NEEDED = 10_000


def inputs_of(
    partition: AssetPartition, materialization: Materialization, most: int = 500
) -> list[AttemptInput]:
    """Return the upstream partitions that the attempt read for a partition; newer ones first.

    A run of several partitions reads the inputs of all at once. As for staleness, the mapping
    decides which inputs concern the partition, unless all partitions need the same.
    """
    rows = AttemptInput.objects.filter(attempt=materialization.attempt_id)
    run = materialization.run
    if run is not None and run.partition_count > 1:
        for unneeded in _unneeded_inputs(partition):
            rows = rows.exclude(unneeded)
    named = rows.select_related("partition__asset__partition_definition")
    named = named.defer("partition__asset__partition_definition__spec")
    is_same = Case(When(partition__version__gt=F("version"), then=0), default=1)
    return list(named.order_by(is_same, "partition__asset__name", "pk")[:most])


def _unneeded_inputs(partition: AssetPartition) -> Iterator[Q]:
    """Yield a condition for each upstream asset: the inputs of other partitions of the run."""
    asset, now = partition.asset, database_now()
    downstream = asset.definition
    own_keys = list(still_known(downstream, [partition.key])) if downstream else []
    dependencies = AssetDependency.objects.filter(downstream=asset).select_related(
        "upstream__partition_definition"
    )
    for dependency in dependencies:
        edge = edge_without_bounds(dependency, asset)
        if not own_keys or edge.upstream is None or not edge.depends_on_own_window:
            continue
        needed = with_time_on_record(edge, dependency.upstream, now).needed(own_keys)
        if len(needed) <= _MOST_NEEDED:
            keys = [key.text for key in needed]
            yield Q(partition__asset=dependency.upstream_id) & ~Q(partition__key__in=keys)
