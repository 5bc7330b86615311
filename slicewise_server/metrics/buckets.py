"""Buckets of times, the same for all metrics."""

from bisect import bisect_left

# Upper bounds in seconds; one more bucket has all greater times. The function `metrics_bucket` of
# the database has the same bounds: a change of the bounds needs a migration.
BOUNDS = (
    *(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    *(10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0),
)


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket of a time."""
    return bisect_left(BOUNDS, seconds)
