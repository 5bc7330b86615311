"""The index of queued runs leads to the first run of each group and version of the code."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0019_clearing")]

    operations = [
        migrations.RemoveIndex(model_name="run", name="run_queued"),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "queued")),
                fields=["queue", "group", "producer_version", "id"],
                name="run_queued",
            ),
        ),
    ]
