"""The database engine: Django's for PostgreSQL, with a pool that survives server restarts."""
