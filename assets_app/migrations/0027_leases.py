"""Leases in a table of their own. Attempts under way keep theirs."""

import django.db.models.deletion
from django.db import migrations, models

_CARRY_OVER = """
INSERT INTO assets_app_lease (attempt_id, until)
SELECT id, lease_until FROM assets_app_runattempt WHERE ended_at IS NULL
"""
# Rows are rewritten every second: the new one fits beside the old one, where no index has to know.
_ROOM = "ALTER TABLE assets_app_lease SET (fillfactor = 50)"


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0026_schedules_that_join_times")]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="lease",
                        serialize=False,
                        to="assets_app.runattempt",
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(_ROOM, migrations.RunSQL.noop),
        migrations.RunSQL(_CARRY_OVER, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="runattempt", name="attempt_leases"),
        migrations.RemoveField(model_name="runattempt", name="lease_until"),
    ]
