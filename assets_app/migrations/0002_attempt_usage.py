"""Resources that attempts have used, and the name of the partitions skipped for later ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add two columns that may be null, and rename one: no table is rewritten."""

    dependencies = [("assets_app", "0001_squashed_0040_plainer_names")]
    operations = [
        migrations.RenameField("scheduletick", "passed_over", "superseded"),
        migrations.AddField("runattempt", "cpu_seconds", models.FloatField(null=True)),
        migrations.AddField("runattempt", "peak_memory", models.BigIntegerField(null=True)),
    ]
