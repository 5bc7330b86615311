"""The inputs of a materialization: the upstream partitions and versions that its attempt read."""

from collections.abc import Iterator

from django.db.models import Case, F, Q, When

from assets_app.models import (
    AssetDependency,
    AssetPartition,
    AttemptInput,
    Materialization,
    Run,
)
from assets_app.queries.clock import database_now
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from assets_app.queries.keys import still_known

# A partition that needs more is taken to need all that the run has read.
_MOST_NEEDED = 10_000


def inputs_of(
    partition: AssetPartition, materialization: Materialization, most: int = 500
) -> list[AttemptInput]:
    """Return the upstream partitions that the attempt read for a partition: newer ones first,
    then in order of time.

    A run of several partitions reads the inputs of all at once. As for staleness, the mapping
    decides which inputs concern the partition, unless all partitions need the same. All inputs of
    an upstream asset are returned if the mapping or the definition has changed since.
    """
    rows = AttemptInput.objects.filter(attempt=materialization.attempt_id)
    run = materialization.run
    if run is not None and run.partition_count > 1:
        for unneeded in _unneeded_inputs(partition, run):
            rows = rows.exclude(unneeded)
    named = rows.select_related("partition__asset__partition_definition")
    named = named.defer("partition__asset__partition_definition__spec")
    is_same = Case(When(partition__version__gt=F("version"), then=0), default=1)
    ordered = named.order_by(is_same, "partition__asset__name", "partition__window_start", "pk")
    return list(ordered[:most])


def _unneeded_inputs(partition: AssetPartition, run: Run) -> Iterator[Q]:
    """Yield a condition for each upstream asset: the inputs of other partitions of the run."""
    asset, now = partition.asset, database_now()
    downstream = asset.definition
    own_keys = list(still_known(downstream, [partition.key])) if downstream else []
    if not own_keys or partition.identity != asset.identity:
        return
    mappings = run.producer_version.spec.mappings
    dependencies = AssetDependency.objects.filter(downstream=asset).select_related(
        "upstream__partition_definition"
    )
    for dependency in dependencies:
        upstream, edge = dependency.upstream, edge_without_bounds(dependency, asset)
        if edge.upstream is None or mappings.get(upstream.name) != dependency.mapping:
            continue
        try:
            if not edge.depends_on_own_window:
                continue
            needed = with_time_on_record(edge, upstream, now).needed(own_keys)
        except ValueError:
            # The upstream asset has another definition since, which the mapping does not fit.
            continue
        if len(needed) <= _MOST_NEEDED:
            of_upstream = Q(partition__asset=upstream, partition__identity=upstream.identity)
            yield of_upstream & ~Q(partition__key__in=[key.text for key in needed])
