"""Loading of bundles: archives, import of definition files, checks of what they declare."""

from slicewise.loading.archives import load_bundle

__all__ = ["load_bundle"]
