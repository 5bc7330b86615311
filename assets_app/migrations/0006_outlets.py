"""Where each outlet of an attempt goes, and what an attempt has found."""

import django.db.models.deletion
from django.db import migrations, models

# What is half published is finished after the upgrade as it would have been before.
_KEEP = """
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO assets_app_attemptoutlet (attempt_id, asset_id, name_on_disk, root, staging)
SELECT attempt.id, run.asset_id,
       attempt.number || coalesce(
           '-' || left(replace(attempt.spark_session_id::text, '-', ''), 12), ''
       ),
       attempt.target_root, attempt.staging_root
FROM assets_app_runattempt AS attempt JOIN assets_app_run AS run ON run.id = attempt.run_id
WHERE attempt.ended_at IS NULL AND attempt.target_root <> ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("assets_app", "0005_schedules"),
        ("partitions_app", "0002_runtime_partitions"),
    ]

    operations = [
        migrations.CreateModel(
            name="AttemptOutlet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name_on_disk", models.CharField(max_length=100)),
                ("root", models.TextField()),
                ("staging", models.TextField()),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outlets",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="attemptoutlet",
            constraint=models.UniqueConstraint(
                fields=("attempt", "asset"), name="attempt_outlet_once"
            ),
        ),
        migrations.RunSQL(_KEEP, migrations.RunSQL.noop),
        migrations.RemoveField(model_name="runattempt", name="target_root"),
        migrations.RemoveField(model_name="runattempt", name="staging_root"),
        migrations.AddField(
            model_name="runattempt",
            name="found",
            field=models.JSONField(default=list),
        ),
    ]
