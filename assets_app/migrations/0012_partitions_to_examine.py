"""The partitions that a schedule had yet to examine when its last pause began."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the column. Of pauses on record no such partitions are known: the list of missed
    partitions has those of writes and ticks, as before.
    """

    dependencies = [("assets_app", "0011_succeeded_runs")]
    operations = [
        migrations.AddField(
            model_name="schedule",
            name="partitions_to_examine",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
