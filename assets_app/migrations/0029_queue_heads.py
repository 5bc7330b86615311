"""Dispatch reads the first ready run of each group and version from a table of its own. Triggers
note every change that such a row depends on, whoever makes it.
"""

import django.db.models.deletion
from django.db import migrations, models

# For each statement and not for each row: a backfill queues and cancels 50,000 runs in one. Of an
# update only runs that were ready before or are so afterwards count, so that it notes nothing
# for the other transitions.
_TRIGGERS = """
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
_NO_TRIGGERS = """
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
# The first dispatch makes the heads of what is queued by now.
_QUEUED_BY_NOW = """
INSERT INTO assets_app_queuechange (queue, group_id, producer_version_id, run_id)
SELECT queue, group_id, producer_version_id, min(id) FROM assets_app_run
WHERE state = 'queued' AND not_before IS NULL
GROUP BY queue, group_id, producer_version_id
"""


_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
_QUEUES = [("scheduled", "Scheduled"), ("backfill", "Backfill")]


def _reference(model: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to=f"assets_app.{model}",
    )


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0028_looks_at_waiting_runs")]

    operations = [
        migrations.CreateModel(
            name="QueueChange",
            fields=[
                ("id", _ID),
                (
                    "queue",
                    models.CharField(
                        blank=True, choices=_QUEUES, db_default="", default="", max_length=10
                    ),
                ),
                ("group_id", models.BigIntegerField(null=True)),
                ("producer_version_id", models.BigIntegerField(null=True)),
                ("run_id", models.BigIntegerField(null=True)),
                ("producer_id", models.BigIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("group_id__isnull", False), ("queue", ""))
                        | models.Q(("producer_id__isnull", False), ("queue", ""))
                        | models.Q(
                            ("group_id__isnull", False), ("producer_version_id__isnull", False)
                        ),
                        name="queue_change_of_something",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueHead",
            fields=[
                ("id", _ID),
                ("queue", models.CharField(choices=_QUEUES, max_length=10)),
                ("group", _reference("rungroup")),
                ("producer_version", _reference("producerversion")),
                ("run", _reference("run")),
                ("producer", _reference("producer")),
                ("needs_spark", models.BooleanField()),
                ("priority", models.IntegerField()),
                ("max_active_runs", models.IntegerField(null=True)),
                ("group_priority", models.IntegerField()),
                ("group_max_active_runs", models.IntegerField(null=True)),
                ("paused", models.BooleanField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("group", "producer_version", "queue"), name="queue_head_once"
                    )
                ],
                "indexes": [models.Index(fields=["producer"], name="queue_head_by_producer")],
            },
        ),
        migrations.RemoveIndex(model_name="run", name="run_queued"),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("not_before__isnull", True), ("state", "queued")),
                fields=["queue", "group", "producer_version", "id"],
                name="run_ready",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("not_before__isnull", False), ("state", "queued")),
                fields=["not_before"],
                name="run_delayed",
            ),
        ),
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
        migrations.RunSQL(_QUEUED_BY_NOW, migrations.RunSQL.noop),
    ]
