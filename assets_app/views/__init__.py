"""Pages of assets, partitions, runs and bundles."""
