"""A gateway's worker: start, supervision, publication and recovery of attempts."""
