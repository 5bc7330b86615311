"""Pictures of all pages, on catalogues that are empty, busy and huge: ``make shots``."""
