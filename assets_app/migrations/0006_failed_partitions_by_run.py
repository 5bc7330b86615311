"""An index by which the overview finds the partitions of a failed run that are still failed."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of failed partitions by run.

    The table has all partitions of all assets: workers go on writing meanwhile. A build that is
    interrupted leaves an index that nothing uses: the next try drops the index first.
    """

    atomic = False
    dependencies = [("assets_app", "0005_missed_spans")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS partition_failed_by_run",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "assetpartition",
            models.Index(
                condition=models.Q(("held_by__isnull", True), ("state", "failed")),
                fields=["last_run", "identity"],
                name="partition_failed_by_run",
            ),
        ),
    ]
