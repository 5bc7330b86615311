"""Since when a schedule goes on, of which ticks move how far it is handled."""

from django.db import migrations, models
from django.db.models.functions import Now

_AS_HANDLED = "UPDATE assets_app_schedule SET began_at = handled_until"
_REASONS = [
    ("nothing_ended", "No partition has ended since the tick before"),
    ("exists", "All that was due is there already"),
    ("in_flight", "Other runs are making all that was due"),
    ("upstream", "What the schedule asks for upstream is missing, or not newer"),
]


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0025_pause_of_schedule")]

    operations = [
        migrations.AddField("schedule", "began_at", models.DateTimeField(db_default=Now())),
        migrations.RunSQL(_AS_HANDLED, migrations.RunSQL.noop),
        migrations.AlterField(
            "scheduletick",
            "reason",
            models.CharField(max_length=20, blank=True, choices=_REASONS),
        ),
    ]
