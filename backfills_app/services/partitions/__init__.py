"""The partitions of a backfill as sets: frozen code, spans of rows, statuses, staleness,
decisions.
"""
