"""What ended attempts have left behind is on record until it is cleared away."""

from django.db import migrations, models

ALLOWED = {
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
BEFORE = {
    **ALLOWED,
    "queued": ("dispatched", "canceled", "skipped", "failed"),
    "dispatched": ("running", "queued", "canceled", "failed"),
}


def _replaced(allowed: dict[str, tuple[str, ...]]) -> str:
    pairs = ", ".join(f"('{old}', '{new}')" for old, states in allowed.items() for new in states)
    return f"""
CREATE OR REPLACE FUNCTION assets_app_check_run_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN ({pairs}) THEN
        RAISE EXCEPTION 'run %: no transition from % to %', NEW.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'run_transition_known';
    END IF;
    RETURN NEW;
END $$;
"""


# Of attempts that ended before this release as well, as far back as anything is likely to be left.
LEFT = """
UPDATE assets_app_runattempt AS attempt
SET clear_at = now(),
    may_go_on = attempt.outcome = 'lost' AND EXISTS (
        SELECT FROM assets_app_run AS run
        WHERE run.id = attempt.run_id AND run.state IN ('queued', 'dispatched')
    )
WHERE attempt.id IN (
    SELECT id FROM assets_app_runattempt
    WHERE outcome IN ('lost', 'failed', 'canceled') ORDER BY id DESC LIMIT 10000
);
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0018_fences")]
    operations = [
        migrations.RunSQL(_replaced(ALLOWED), _replaced(BEFORE)),
        migrations.AddField(
            model_name="runattempt",
            name="may_go_on",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="runattempt",
            name="clear_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunSQL(LEFT, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="runattempt",
            index=models.Index(
                condition=models.Q(("clear_at__isnull", False)),
                fields=["clear_at"],
                name="attempt_to_clear",
            ),
        ),
        migrations.AddIndex(
            model_name="runattempt",
            index=models.Index(
                condition=models.Q(("may_go_on", True)),
                fields=["run"],
                name="attempt_may_go_on",
            ),
        ),
        migrations.AddConstraint(
            model_name="runattempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("clear_at__isnull", True), ("ended_at__isnull", False), _connector="OR"
                ),
                name="attempt_cleared_when_ended",
            ),
        ),
    ]
