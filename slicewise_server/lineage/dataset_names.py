"""Names of datasets in OpenLineage, for assets with and without a URI."""

from django.conf import settings

from slicewise import openlineage_name


def dataset_name(asset: str, canonical_uri: str) -> tuple[str, str]:
    """Return OpenLineage's (namespace, name) of an asset: of its location or, without a location,
    of the asset itself in the namespace of this installation's jobs.
    """
    if not canonical_uri:
        return settings.OPENLINEAGE_NAMESPACE, asset
    return openlineage_name(canonical_uri)
