"""Running of functions: contexts, handles of assets, arguments, trials."""
