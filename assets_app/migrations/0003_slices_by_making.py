"""Slices without time in the order of their making: what a run that asks for the past reads."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0002_run_transitions")]
    operations = [
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                fields=["asset", "identity", "materialized_at", "id"],
                condition=models.Q(window_start__isnull=True, version__gt=0),
                name="slice_by_making",
            ),
        )
    ]
