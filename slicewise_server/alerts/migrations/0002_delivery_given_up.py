"""An index by which the page of alerts counts the messages of a channel that were given up."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add an index of the deliveries that were given up, without test messages.

    Workers go on writing meanwhile. A build that is interrupted leaves an index that nothing uses:
    the next try drops the index first.
    """

    atomic = False
    dependencies = [("alerts", "0001_squashed_0002_declared_alerts")]
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS delivery_given_up",
            migrations.RunSQL.noop,
            elidable=True,
        ),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                condition=models.Q(("first_position__isnull", False), ("state", "failed")),
                fields=["channel", "created_at"],
                name="delivery_given_up",
            ),
        ),
    ]
