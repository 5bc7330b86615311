"""When runs that wait for the partition before their own are looked at: those of now at once."""

from django.db import migrations, models
from django.db.models import Q

_NOW = """
UPDATE assets_app_runneed AS need SET look_at = now()
FROM assets_app_run AS run WHERE run.id = need.run_id AND run.state = 'waiting'
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0027_leases")]

    operations = [
        migrations.AddField("runneed", "look_at", models.DateTimeField(null=True)),
        migrations.RunSQL(_NOW, migrations.RunSQL.noop),
        migrations.AddIndex(
            "runneed",
            models.Index(
                fields=["look_at"], condition=Q(look_at__isnull=False), name="need_to_look_at"
            ),
        ),
        migrations.AddIndex(
            "runneed",
            models.Index(
                fields=["asset", "identity", "key"],
                condition=Q(look_at__isnull=False),
                name="need_by_partition",
            ),
        ),
    ]
