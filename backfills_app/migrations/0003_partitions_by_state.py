"""Indexes by which the list of a backfill's partitions finds those of one state or reason."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Lower


def _drop(name: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}", migrations.RunSQL.noop, elidable=True
    )


class Migration(migrations.Migration):
    """Add an index by state, and the order of the list to the index by reason.

    The table has all partitions of all backfills: workers go on writing meanwhile. A build that is
    interrupted leaves an index that nothing uses: the next try drops the index first.
    """

    atomic = False
    dependencies = [("backfills_app", "0002_failed_partitions")]
    operations = [
        _drop("backfill_partition_by_state"),
        AddIndexConcurrently(
            "backfillpartition",
            models.Index(
                "backfill_asset", Lower("state"), "position", name="backfill_partition_by_state"
            ),
        ),
        _drop("backfill_partition_by_reason"),
        AddIndexConcurrently(
            "backfillpartition",
            models.Index(
                fields=("backfill_asset", "reason", "position"),
                condition=models.Q(state="skipped"),
                name="backfill_partition_by_reason",
            ),
        ),
        RemoveIndexConcurrently("backfillpartition", "backfill_partition_skipped"),
    ]
