"""SQL of the triggers that note the states that runs enter and leave.

Whoever changes a run, the change is noted in the same transaction. For each statement and not for
each row: a backfill queues and cancels 50,000 runs in one. Of an update, the runs in each state
before are taken off the runs in the state afterwards, so that an update that leaves the state notes
nothing. Runs before and after are not joined: a plan of the first statement, with one run, would be
kept for 50,000.
"""

# A time that equals a bound belongs below the bound: times have whole microseconds.
CREATE_TRIGGERS = """
CREATE FUNCTION metrics_bucket(seconds double precision) RETURNS int IMMUTABLE LANGUAGE sql
RETURN width_bucket(seconds - 0.0000005, ARRAY[
    0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400
]::double precision[]);

CREATE FUNCTION metrics_note_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO metrics_runchange (asset_id, queue, state, change)
        SELECT asset_id, queue, state, count(*) FROM new_run GROUP BY asset_id, queue, state;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO metrics_runchange (asset_id, queue, state, change)
        SELECT asset_id, queue, state, -count(*) FROM old_run GROUP BY asset_id, queue, state;
    ELSE
        INSERT INTO metrics_runchange (asset_id, queue, state, bucket, change, seconds)
        SELECT asset_id, queue, state, metrics_bucket(seconds), sum(change), sum(change * seconds)
        FROM (
            SELECT asset_id, queue, state, -1 AS change, extract(epoch FROM CASE
                WHEN state = 'running' AND attempt_count = 1 THEN started_at - queued_at
                WHEN state IN ('succeeded', 'failed', 'canceled') THEN ended_at - started_at
            END) AS seconds FROM old_run
            UNION ALL
            SELECT asset_id, queue, state, 1, extract(epoch FROM CASE
                WHEN state = 'running' AND attempt_count = 1 THEN started_at - queued_at
                WHEN state IN ('succeeded', 'failed', 'canceled') THEN ended_at - started_at
            END) FROM new_run
        ) AS step
        GROUP BY asset_id, queue, state, metrics_bucket(seconds)
        HAVING sum(change) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_counted_inserted AFTER INSERT ON assets_app_run
    REFERENCING NEW TABLE AS new_run
    FOR EACH STATEMENT EXECUTE FUNCTION metrics_note_runs();
CREATE TRIGGER run_counted_updated AFTER UPDATE ON assets_app_run
    REFERENCING OLD TABLE AS old_run NEW TABLE AS new_run
    FOR EACH STATEMENT EXECUTE FUNCTION metrics_note_runs();
CREATE TRIGGER run_counted_deleted AFTER DELETE ON assets_app_run
    REFERENCING OLD TABLE AS old_run
    FOR EACH STATEMENT EXECUTE FUNCTION metrics_note_runs();
"""
# After the triggers, whose creation keeps other transactions from changing runs.
COUNT_RUNS = """
INSERT INTO metrics_runcount (asset_id, queue, state, runs, entered)
SELECT asset_id, queue, state, count(*), count(*) FROM assets_app_run
GROUP BY asset_id, queue, state;
"""
DROP_TRIGGERS = """
DROP TRIGGER run_counted_deleted ON assets_app_run;
DROP TRIGGER run_counted_updated ON assets_app_run;
DROP TRIGGER run_counted_inserted ON assets_app_run;
DROP FUNCTION metrics_note_runs();
DROP FUNCTION metrics_bucket(double precision);
"""
