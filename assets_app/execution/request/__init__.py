"""Requests of people about runs and partitions: materialize, retry, report, verify, forget."""
