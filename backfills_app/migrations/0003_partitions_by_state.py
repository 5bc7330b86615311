"""Indexes by which the list of a backfill's partitions finds those of one state or reason."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Replace two indexes by two wider ones, which also hold the order of the list."""

    dependencies = [("backfills_app", "0002_failed_partitions")]
    operations = [
        migrations.AddIndex(
            "backfillpartition",
            models.Index(
                fields=("backfill_asset", "state", "position"), name="backfill_partition_by_state"
            ),
        ),
        migrations.AddIndex(
            "backfillpartition",
            models.Index(
                fields=("backfill_asset", "reason", "position"),
                condition=models.Q(state="skipped"),
                name="backfill_partition_by_reason",
            ),
        ),
        migrations.RemoveIndex("backfillpartition", "backfill_partition_failed"),
        migrations.RemoveIndex("backfillpartition", "backfill_partition_skipped"),
    ]
