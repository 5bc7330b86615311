"""An index by which the list of runs finds the newest runs of a request with errors."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of the runs of each request, schedule or backfill that have an error.

    The table has all runs of all assets: workers go on writing meanwhile. A build that is
    interrupted leaves an index that nothing uses: the next try drops the index first.
    """

    atomic = False
    dependencies = [("assets_app", "0008_runs_with_errors")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS run_with_error_by_group",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(("error", ""), _negated=True),
                fields=["group", "-id"],
                name="run_with_error_by_group",
            ),
        ),
    ]
