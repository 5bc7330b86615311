"""Indexes by which the list of a backfill's partitions finds those of one state or reason."""

from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    """Add an index by state, and the order of the list to the index by reason."""

    dependencies = [("backfills_app", "0002_failed_partitions")]
    operations = [
        migrations.AddIndex(
            "backfillpartition",
            models.Index(
                "backfill_asset", Lower("state"), "position", name="backfill_partition_by_state"
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
        migrations.RemoveIndex("backfillpartition", "backfill_partition_skipped"),
    ]
