"""The pages of backfills, and the overview, which shows backfills beside all other active work."""
