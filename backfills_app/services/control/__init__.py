"""Changes to backfills that people ask for."""
