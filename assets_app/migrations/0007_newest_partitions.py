"""An index by which schedules and pages find the newest partition of an asset with windows."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of materialized partitions with windows by the time of materialization.

    The table has all partitions of all assets: workers go on writing meanwhile. A build that is
    interrupted leaves an index that nothing uses: the next try drops the index first.
    """

    atomic = False
    dependencies = [("assets_app", "0006_failed_partitions_by_run")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS partition_with_window_newest",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "assetpartition",
            models.Index(
                condition=models.Q(("version__gt", 0), ("window_start__isnull", False)),
                fields=["asset", "identity", "materialized_at", "id"],
                name="partition_with_window_newest",
            ),
        ),
    ]
