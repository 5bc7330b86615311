"""SQL by which the database refuses a change of a run's state that the table below does not have.

A later migration that allows more replaces the function (`CREATE OR REPLACE FUNCTION`).
"""

_ALLOWED = {
    "waiting": ("queued", "canceled", "skipped", "failed"),
    "queued": ("dispatched", "canceling", "canceled", "skipped", "failed"),
    "dispatched": ("running", "queued", "canceling", "canceled", "failed"),
    "running": ("publishing", "failed", "canceling", "queued"),
    "publishing": ("succeeded", "failed"),
    "canceling": ("canceled",),
    "failed": ("queued",),
    "canceled": ("queued",),
    "skipped": ("queued",),
}
_PAIRS = ", ".join(f"('{old}', '{new}')" for old, states in _ALLOWED.items() for new in states)

CREATE_TRIGGER = f"""
CREATE FUNCTION assets_app_check_run_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN ({_PAIRS}) THEN
        RAISE EXCEPTION 'run %: no transition from % to %', NEW.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'run_transition_known';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER run_transition_known BEFORE UPDATE OF state ON assets_app_run
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION assets_app_check_run_transition();
"""
DROP_TRIGGER = """
DROP TRIGGER run_transition_known ON assets_app_run;
DROP FUNCTION assets_app_check_run_transition();
"""
