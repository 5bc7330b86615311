"""Whether a schedule by assets queues runs that discover partitions (AIP-76)."""

from assets_app.models import Asset, AssetDependency


def discovers_when_scheduled(asset: Asset) -> bool:
    """Return whether a schedule by assets queues runs of the asset that discover partitions: one
    statement for an asset with partitions at run time.

    Such an asset is queued key by key where it is scheduled by an asset of the same set.
    """
    if not asset.finds_partitions:
        return False
    upstream = AssetDependency.objects.filter(downstream=asset, scheduling=True)
    return not upstream.filter(
        upstream__partition_definition=asset.partition_definition_id
    ).exists()
