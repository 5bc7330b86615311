"""Shared parts of commands that wait for work."""
