"""When schedules were paused. Those that are paused by now count from now."""

from django.db import migrations, models

_PAUSED_BY_NOW = """
UPDATE assets_app_schedule AS schedule
SET paused_at = now(), handled_before_pause = handled_until
FROM assets_app_asset AS asset
WHERE asset.producer_id = schedule.producer_id AND asset.paused
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0024_upstream_nonexistent")]

    operations = [
        migrations.AddField("schedule", "paused_at", models.DateTimeField(null=True)),
        migrations.AddField("schedule", "unpaused_at", models.DateTimeField(null=True)),
        migrations.AddField("schedule", "handled_before_pause", models.DateTimeField(null=True)),
        migrations.RunSQL(_PAUSED_BY_NOW, migrations.RunSQL.noop),
    ]
