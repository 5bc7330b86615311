"""A number that grows with each worker that takes an attempt over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0017_schedule_failures")]
    operations = [
        migrations.AddField(
            model_name="runattempt",
            name="fence",
            field=models.PositiveIntegerField(db_default=1, default=1),
        ),
    ]
