"""Attempts that keep what they have read for the whole of an asset: found by an index."""

import django.db.models.deletion
from django.db import migrations, models

# Also those that look for the partitions of an asset: they read as if they made the whole.
_KEEP = """
UPDATE assets_app_runattempt AS attempt SET keeps_inputs_of_id = run.asset_id
FROM assets_app_run AS run
JOIN assets_app_asset AS asset ON asset.id = run.asset_id
WHERE run.id = attempt.run_id
  AND (asset.partition_definition_id IS NULL OR EXISTS (
      SELECT FROM assets_app_runpartition AS wanted
      JOIN assets_app_assetpartition AS slice ON slice.id = wanted.slice_id
      WHERE wanted.run_id = run.id AND slice.identity = 'discovery'
  ))
  AND EXISTS (SELECT FROM assets_app_attemptinput AS read WHERE read.attempt_id = attempt.id)
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0032_fewer_neighbours")]

    operations = [
        migrations.AddField(
            "runattempt",
            "keeps_inputs_of",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="assets_app.asset",
            ),
        ),
        migrations.RunSQL(_KEEP, migrations.RunSQL.noop),
        migrations.AddIndex(
            "runattempt",
            models.Index(
                condition=models.Q(("keeps_inputs_of__isnull", False)),
                fields=["keeps_inputs_of"],
                name="attempt_keeps_inputs",
            ),
        ),
    ]
