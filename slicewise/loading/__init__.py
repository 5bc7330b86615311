"""Loading of bundles: archives, import of definition files, checks of declarations."""

from slicewise.loading.archives import DEFAULT_LIMIT_BYTES, BundleError, archive, load_bundle

__all__ = ["DEFAULT_LIMIT_BYTES", "BundleError", "archive", "load_bundle"]
