"""The partitions that failed, for events of failed runs that published their other partitions."""

MOST_FAILED_NAMED = 10
"""The number of failed partitions that the event of a run names."""

# Joins a row for each row of `run`: `detail` has the number and the first keys of the partitions
# that failed if not all of the run's partitions failed. Other runs have no row to read.
JOIN_PARTIAL_FAILURES = f"""
LEFT JOIN LATERAL (
    SELECT jsonb_build_object('failed', count(*), 'failed_partitions', (
        SELECT jsonb_agg(named.key ORDER BY named.position)
        FROM (
            SELECT partition.key, first.position
            FROM assets_app_runpartition AS first
            JOIN assets_app_assetpartition AS partition ON partition.id = first.partition_id
            WHERE first.run_id = run.id AND first.state = 'failed'
            ORDER BY first.position LIMIT {MOST_FAILED_NAMED}
        ) AS named
    )) AS detail
    FROM assets_app_runpartition AS own
    WHERE own.run_id = run.id AND own.state = 'failed'
      AND run.state = 'failed' AND run.partition_count > 1
    HAVING count(*) BETWEEN 1 AND run.partition_count - 1
) AS partial ON true
"""  # noqa: S608  (a number of this module)
