"""A backfill that cannot go on at present says why, and when that is tried again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("backfills_app", "0004_skipped")]

    operations = [
        migrations.AddField(
            model_name="backfill",
            name="stalled_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="backfill",
            name="stalled_error",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="backfill",
            name="try_again_at",
            field=models.DateTimeField(null=True),
        ),
    ]
