"""Backfills through the API."""
