"""Since when upstream writes were not evaluated when the last pause of a schedule began."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the column. Pauses on record have no such time: the list of missed partitions begins with
    the pause, as before.
    """

    dependencies = [("assets_app", "0009_errors_by_group")]
    operations = [
        migrations.AddField(
            model_name="schedule",
            name="unevaluated_since",
            field=models.DateTimeField(null=True),
        ),
    ]
