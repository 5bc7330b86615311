"""The API of backfills."""
