"""SQL that leaves room in the pages of tables whose rows are rewritten, so that an update finds
room beside the old row and writes to no index.
"""

# A row is changed twice: when its data is staged, and when it is recorded.
RUN_PARTITIONS = "ALTER TABLE assets_app_runpartition SET (fillfactor = 50)"
# Rows are rewritten every second.
LEASES = "ALTER TABLE assets_app_lease SET (fillfactor = 50)"
