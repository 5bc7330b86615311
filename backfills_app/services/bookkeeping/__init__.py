"""Counts, locks and messages of backfills."""
