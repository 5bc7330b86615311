"""An index by which the overview finds the backfills that failed last."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of the backfills that failed.

    Workers go on writing meanwhile. A build that is interrupted leaves an index that nothing uses:
    the next try drops the index first.
    """

    atomic = False
    dependencies = [("backfills_app", "0003_partitions_by_state")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS backfill_failed",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "backfill",
            models.Index(
                condition=models.Q(
                    ("deleted", False), ("state__in", ("partially_failed", "failed"))
                ),
                fields=["-run_end_date"],
                name="backfill_failed",
            ),
        ),
    ]
