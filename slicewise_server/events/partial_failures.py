"""The partitions that failed, for events of failed runs that published their other partitions."""

MOST_FAILED_NAMED = 10
"""The number of failed partitions that the event of a run names."""

# Joins a row for each row of `run`: `detail` has the number and the first keys of the partitions
# that failed if not all of the run's partitions failed. A run of several assets has a row of each
# asset for one partition, and counts the partition once. Other runs have no row to read.
JOIN_PARTIAL_FAILURES = f"""
LEFT JOIN LATERAL (
    SELECT jsonb_build_object(
        'failed', count(*),
        'failed_partitions', jsonb_agg(failed.key ORDER BY failed.position)
            FILTER (WHERE failed.place <= {MOST_FAILED_NAMED})
    ) AS detail
    FROM (
        SELECT partition.key, min(own.position) AS position,
               row_number() OVER (ORDER BY min(own.position)) AS place
        FROM assets_app_runpartition AS own
        JOIN assets_app_assetpartition AS partition ON partition.id = own.partition_id
        WHERE own.run_id = run.id AND own.state = 'failed'
          AND run.state = 'failed' AND run.partition_count > 1
          AND EXISTS (
              SELECT FROM assets_app_runpartition AS published
              WHERE published.run_id = run.id AND published.state = 'succeeded'
          )
        GROUP BY partition.key
    ) AS failed
    HAVING count(*) BETWEEN 1 AND run.partition_count - 1
) AS partial ON true
"""  # noqa: S608  (a number of this module)
