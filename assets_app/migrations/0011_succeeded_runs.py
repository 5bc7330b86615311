"""An index by which estimates and overviews find the newest succeeded runs of an asset."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of the runs that succeeded.

    The table has all runs of all assets: workers go on writing meanwhile. A build that is
    interrupted leaves an index that nothing uses: the next try drops the index first.
    """

    atomic = False
    dependencies = [("assets_app", "0010_unevaluated_writes")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS run_succeeded",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(("state", "succeeded")),
                fields=["asset", "-id", "partition_count"],
                name="run_succeeded",
            ),
        ),
    ]
