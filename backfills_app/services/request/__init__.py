"""A request for a backfill: read, checked, previewed, created."""
