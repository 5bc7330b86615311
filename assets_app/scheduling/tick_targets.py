"""The assets that ticks of schedules by time are about."""

from collections.abc import Sequence
from itertools import chain

from assets_app.models import Asset, Schedule, Target
from partitions_app.models import PartitionDefinition


def targets_of(schedules: Sequence[Schedule]) -> dict[int, list[Target]]:
    """Return the targets of ticks, by producer: of the assets that are made together, a paused one
    comes first if there is any. The run of the first makes the others as well.

    Of an asset whose partitions are found at run time, ticks queue a run that discovers partitions.
    """
    producers = {schedule.producer_id: schedule.producer for schedule in schedules}
    declared = (
        Asset.objects.filter(producer__in=producers, active=True)
        .only("name", "producer_id", "partition_definition_id", "paused")
        .order_by("producer_id", "-paused", "id")
    )
    assets_by_producer: dict[int, list[Asset]] = {}
    for asset in declared:
        producer = producers[asset.producer_id or 0]
        # An asset stays in force while its own file is broken, even if its function no longer makes
        # the asset.
        if asset.name in producer.outlet_names:
            assets_by_producer.setdefault(producer.pk, []).append(asset)
    # Many assets share one partition definition, which is read once.
    definitions = PartitionDefinition.objects.in_bulk(
        {
            pk
            for assets in assets_by_producer.values()
            for asset in assets
            if (pk := asset.partition_definition_id) is not None
        }
    )
    for asset in chain.from_iterable(assets_by_producer.values()):
        if asset.partition_definition_id is not None:
            asset.partition_definition = definitions[asset.partition_definition_id]
    return {
        pk: [Target(asset, is_discovering=asset.finds_partitions) for asset in assets]
        for pk, assets in assets_by_producer.items()
    }
