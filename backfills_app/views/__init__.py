"""Pages of backfills, and the overview, which shows them beside all else that is going on."""
