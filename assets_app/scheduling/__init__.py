"""When partitions are due: ticks of schedules by time, and upstream partitions that are there."""
