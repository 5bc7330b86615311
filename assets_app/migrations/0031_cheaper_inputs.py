"""Inputs without foreign keys, and none of the needs of runs that have ended."""

import django.db.models.deletion
from django.db import migrations, models

_FORGET = """
DELETE FROM assets_app_runneed AS need USING assets_app_run AS run
WHERE run.id = need.run_id AND run.state IN ('succeeded', 'failed', 'canceled', 'skipped')
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0029_queue_heads")]

    operations = [
        migrations.RunSQL(_FORGET, migrations.RunSQL.noop),
        migrations.AlterField(
            "attemptinput",
            "attempt",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="inputs",
                to="assets_app.runattempt",
            ),
        ),
        migrations.AlterField(
            "attemptinput",
            "slice",
            models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="read_by",
                to="assets_app.assetpartition",
            ),
        ),
    ]
