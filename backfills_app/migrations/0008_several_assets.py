from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("backfills_app", "0007_pending_control"),
    ]

    operations = [
        migrations.AddField(
            model_name="backfill",
            name="chosen_by",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="backfillasset",
            name="role",
            field=models.CharField(
                choices=[
                    ("chosen", "Chosen"),
                    ("upstream", "Upstream"),
                    ("downstream", "Downstream"),
                ],
                db_default="chosen",
                default="chosen",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillasset",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["chosen", "upstream", "downstream"])),
                name="backfill_asset_role_known",
            ),
        ),
        # Until now one asset was asked for, and all others followed it.
        migrations.RunSQL(
            "UPDATE backfills_app_backfillasset SET role = 'downstream' WHERE position > 0",
            migrations.RunSQL.noop,
        ),
    ]
