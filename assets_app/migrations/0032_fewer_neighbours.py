from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("assets_app", "0031_cheaper_inputs"),
    ]

    operations = [
        migrations.AddField(
            model_name="gateway",
            name="closed_slots",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="runattempt",
            name="was_alone",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
