"""Shared parts of all operations of the API: pages of results, problem details, fields."""
