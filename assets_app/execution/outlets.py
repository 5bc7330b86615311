"""The assets that one function makes together (AIP-75, multi-assets)."""

from assets_app.models import Asset, ProducerVersion, Run


def outlet_ids(version: ProducerVersion, asset: Asset) -> dict[str, int]:
    """Return the ids of all assets that a new run of this version makes, by name and in order;
    ``asset`` is one of them.

    One that another function is declared to make by now is left to that one: it is among the
    outlets of two versions while the file that it has left is broken. One statement, and none for
    what is made alone.
    """
    names = list(version.outlets)
    if names == [asset.name]:
        return {asset.name: asset.pk}
    own = Asset.objects.filter(name__in=names, producer=version.producer_id)
    ids = dict(own.values_list("name", "pk"))
    return {name: ids[name] for name in names if name in ids}


def claimed_outlet_ids(run: Run) -> dict[str, int]:
    """Return the ids of the assets of which a run has claimed partitions, by name and in order.

    Whatever has been declared since, it makes these and no others. A partition is claimed of all of
    them: the first few of the run's slices name each.
    """
    names = list(run.producer_version.outlets)
    if names == [run.asset.name]:
        return {run.asset.name: run.asset_id}
    first = run.partitions.order_by("position").values("slice__asset")[: len(names)]
    claimed = Asset.objects.filter(pk__in=[row["slice__asset"] for row in first])
    ids = dict(claimed.values_list("name", "pk"))
    return {name: ids[name] for name in names if name in ids}
