"""The embedded stack: PostgreSQL, Redis, Spark and our own processes, on one machine."""
