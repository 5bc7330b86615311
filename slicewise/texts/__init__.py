"""Texts for people: hints, tracebacks, masked secrets, sizes, what a terminal may print."""
