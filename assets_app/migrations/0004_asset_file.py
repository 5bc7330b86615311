"""Assets know the file that declares them, also those without a function, and its warnings."""

from django.db import migrations, models

FILL = """
UPDATE assets_app_asset AS asset SET file = version.file
FROM assets_app_producer AS producer
JOIN assets_app_producerversion AS version ON version.id = producer.current_version_id
WHERE asset.producer_id = producer.id
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0003_slices_by_making")]
    operations = [
        migrations.AddField(
            "asset",
            "file",
            models.CharField(blank=True, max_length=1000, default=""),
            preserve_default=False,
        ),
        migrations.AddField("asset", "warnings", models.JSONField(default=list)),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
