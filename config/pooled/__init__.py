"""The database engine: Django's for PostgreSQL, with a pool that outlives the server's restarts."""
