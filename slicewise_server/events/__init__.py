"""Events for people and other programs: rows that are written with the change.

An event is written in the transaction of the change, gets its place in the feed afterwards, and is
kept for EVENT_DAYS.
"""
