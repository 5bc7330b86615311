"""The grid of an asset's partitions: layouts, cells, and tables for times and segments."""
