"""Schedules: when partitions are due, by ticks of times and by upstream partitions."""
