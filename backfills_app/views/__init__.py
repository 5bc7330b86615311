"""The pages of backfills."""
