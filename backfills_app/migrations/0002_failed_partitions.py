"""An index of failed partitions, by which the page of a backfill finds the first one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Create one index, which only failed partitions are in."""

    dependencies = [("backfills_app", "0001_squashed_0011_submission")]
    operations = [
        migrations.AddIndex(
            "backfillpartition",
            models.Index(
                fields=("backfill_asset", "position"),
                condition=models.Q(state="failed"),
                name="backfill_partition_failed",
            ),
        )
    ]
