"""SQL of the triggers that note every change on which the place of a run in its queue depends.

Dispatch reads the first ready run of each group and version from a table of its own
(`assets_app/execution/queue/queue_heads.py`). The triggers note a change whoever makes it.
"""

# For each statement and not for each row: a backfill queues and cancels 50,000 runs in one. Of an
# update only runs that were ready before or are so afterwards count, so that it notes nothing
# for the other transitions.
CREATE_TRIGGERS = """
CREATE FUNCTION assets_app_note_ready_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO assets_app_queuechange (queue, group_id, producer_version_id, run_id)
        SELECT queue, group_id, producer_version_id, min(id) FROM new_run
        WHERE state = 'queued' AND not_before IS NULL
        GROUP BY queue, group_id, producer_version_id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO assets_app_queuechange (queue, group_id, producer_version_id)
        SELECT DISTINCT queue, group_id, producer_version_id FROM old_run
        WHERE state = 'queued' AND not_before IS NULL;
    ELSE
        INSERT INTO assets_app_queuechange (queue, group_id, producer_version_id, run_id)
        SELECT queue, group_id, producer_version_id, min(id) FROM (
            SELECT queue, group_id, producer_version_id, NULL::bigint AS id FROM old_run
            WHERE state = 'queued' AND not_before IS NULL
            UNION ALL
            SELECT queue, group_id, producer_version_id, id FROM new_run
            WHERE state = 'queued' AND not_before IS NULL
        ) AS changed
        GROUP BY queue, group_id, producer_version_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_ready_inserted AFTER INSERT ON assets_app_run
    REFERENCING NEW TABLE AS new_run
    FOR EACH STATEMENT EXECUTE FUNCTION assets_app_note_ready_runs();
CREATE TRIGGER run_ready_updated AFTER UPDATE ON assets_app_run
    REFERENCING OLD TABLE AS old_run NEW TABLE AS new_run
    FOR EACH STATEMENT EXECUTE FUNCTION assets_app_note_ready_runs();
CREATE TRIGGER run_ready_deleted AFTER DELETE ON assets_app_run
    REFERENCING OLD TABLE AS old_run
    FOR EACH STATEMENT EXECUTE FUNCTION assets_app_note_ready_runs();

CREATE FUNCTION assets_app_note_group_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO assets_app_queuechange (group_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER group_order_changed
    AFTER UPDATE OF priority, max_active_runs, paused ON assets_app_rungroup
    FOR EACH ROW WHEN (
        (OLD.priority, OLD.max_active_runs, OLD.paused)
        IS DISTINCT FROM (NEW.priority, NEW.max_active_runs, NEW.paused)
    ) EXECUTE FUNCTION assets_app_note_group_change();

CREATE FUNCTION assets_app_note_producer_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO assets_app_queuechange (producer_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER producer_version_changed AFTER UPDATE OF current_version_id ON assets_app_producer
    FOR EACH ROW WHEN (OLD.current_version_id IS DISTINCT FROM NEW.current_version_id)
    EXECUTE FUNCTION assets_app_note_producer_change();

CREATE FUNCTION assets_app_note_definition_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO assets_app_queuechange (producer_id) VALUES (NEW.producer_id);
    RETURN NULL;
END $$;
CREATE TRIGGER producer_definition_changed AFTER UPDATE OF definition ON assets_app_producerversion
    FOR EACH ROW WHEN (OLD.definition IS DISTINCT FROM NEW.definition)
    EXECUTE FUNCTION assets_app_note_definition_change();
"""
DROP_TRIGGERS = """
DROP TRIGGER producer_definition_changed ON assets_app_producerversion;
DROP TRIGGER producer_version_changed ON assets_app_producer;
DROP TRIGGER group_order_changed ON assets_app_rungroup;
DROP TRIGGER run_ready_deleted ON assets_app_run;
DROP TRIGGER run_ready_updated ON assets_app_run;
DROP TRIGGER run_ready_inserted ON assets_app_run;
DROP FUNCTION assets_app_note_definition_change();
DROP FUNCTION assets_app_note_producer_change();
DROP FUNCTION assets_app_note_group_change();
DROP FUNCTION assets_app_note_ready_runs();
"""
