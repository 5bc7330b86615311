"""Until when ticks of the last pause of a schedule would have handled windows."""

from typing import Any

from django.db import migrations, models
from django.db.models import F


def keep_lists(apps: Any, schema_editor: Any) -> None:
    """Keep what pauses missed that have ended: to the end of each pause."""
    schedules = apps.get_model("assets_app", "Schedule").objects.using(
        schema_editor.connection.alias
    )
    schedules.filter(unpaused_at__isnull=False).update(missed_until=F("unpaused_at"))


class Migration(migrations.Migration):
    """Add the column, and fill the column in for pauses that have ended."""

    dependencies = [("assets_app", "0004_worker_names")]
    operations = [
        migrations.AddField(
            model_name="schedule",
            name="missed_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(keep_lists, migrations.RunPython.noop),
    ]
