"""The assets that one function materializes together (AIP-75, multi-assets)."""

from django.db.models import Q

from assets_app.models import Asset, ProducerVersion, Run


def outlet_ids(version: ProducerVersion, asset: Asset) -> dict[str, int]:
    """Return the ids of all assets that a new run of this version materializes, by name, in order.

    ``asset`` is among these. Another asset that another function is declared to materialize by now
    is left to that function: the asset is among the outlets of two versions while the file that the
    asset has left is broken. Takes one statement, and none for a single outlet.
    """
    names = list(version.outlets)
    if names == [asset.name]:
        return {asset.name: asset.pk}
    is_own = Q(producer=version.producer_id) | Q(pk=asset.pk)
    own_assets = Asset.objects.filter(is_own, name__in=names)
    ids = dict(own_assets.values_list("name", "pk"))
    return {name: ids[name] for name in names if name in ids}


def claimed_outlet_ids(run: Run) -> dict[str, int]:
    """Return the ids of the assets in which a run has claimed partitions, by name and in order.

    The run materializes these assets and no others, even if declarations have changed since. Each
    key is claimed in all of the assets: the first few partitions of the run name each asset.
    """
    names = list(run.producer_version.outlets)
    if names == [run.asset.name]:
        return {run.asset.name: run.asset_id}
    first = run.partitions.order_by("position").values("partition__asset")[: len(names)]
    claimed = Asset.objects.filter(pk__in=[row["partition__asset"] for row in first])
    ids = dict(claimed.values_list("name", "pk"))
    return {name: ids[name] for name in names if name in ids}
