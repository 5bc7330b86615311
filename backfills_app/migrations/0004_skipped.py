"""An index of what was skipped, by reason: pages count it of backfills of any size."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("backfills_app", "0003_frozen_cut"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="backfillpartition",
            index=models.Index(
                condition=models.Q(("state", "skipped")),
                fields=["backfill_asset", "reason"],
                name="backfill_partition_skipped",
            ),
        ),
    ]
