"""The database refuses a change of a run's state that the table of transitions does not have."""

from django.db import migrations

ALLOWED = {
    "waiting": ("queued", "canceled", "skipped", "failed"),
    "queued": ("dispatched", "canceled", "skipped", "failed"),
    "dispatched": ("running", "queued", "canceled", "failed"),
    "running": ("publishing", "failed", "canceling", "queued"),
    "publishing": ("succeeded", "failed"),
    "canceling": ("canceled",),
    "failed": ("queued",),
    "canceled": ("queued",),
    "skipped": ("queued",),
}
PAIRS = ", ".join(f"('{old}', '{new}')" for old, states in ALLOWED.items() for new in states)

CREATE = f"""
CREATE FUNCTION assets_app_check_run_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN ({PAIRS}) THEN
        RAISE EXCEPTION 'run %: no transition from % to %', NEW.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'run_transition_known';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER run_transition_known BEFORE UPDATE OF state ON assets_app_run
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION assets_app_check_run_transition();
"""
DROP = """
DROP TRIGGER run_transition_known ON assets_app_run;
DROP FUNCTION assets_app_check_run_transition();
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0001_initial")]
    operations = [migrations.RunSQL(CREATE, DROP)]
