"""Metrics for Prometheus: numbers that are kept or looked up in the database, at ``/metrics``."""
