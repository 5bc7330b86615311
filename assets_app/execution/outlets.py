"""The assets that one function makes together (AIP-75, multi-assets)."""

from assets_app.models import Asset, ProducerVersion


def outlet_ids(version: ProducerVersion, asset: Asset) -> dict[str, int]:
    """Ids of all that a run of this version makes, by name and in order; ``asset`` is one of them.

    One statement, and none for what is made alone.
    """
    names = list(version.outlets)
    if names == [asset.name]:
        return {asset.name: asset.pk}
    found = dict(Asset.objects.filter(name__in=names).values_list("name", "pk"))
    return {name: found[name] for name in names if name in found}
