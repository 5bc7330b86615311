"""Labels of policies, orders and skip reasons: the field's words."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("backfills_app", "0008_several_assets")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="backfill",
                    name="existing",
                    field=models.CharField(
                        choices=[
                            ("missing", "Missing only"),
                            ("missing_and_failed", "Missing and failed"),
                            ("stale", "Missing, failed, stale or from older code"),
                            ("all", "All, including materialized"),
                        ],
                        default="missing_and_failed",
                        max_length=20,
                    ),
                ),
                migrations.AlterField(
                    model_name="backfill",
                    name="order",
                    field=models.CharField(
                        choices=[
                            ("oldest", "Oldest first"),
                            ("newest", "Newest first"),
                            ("listed", "As listed"),
                        ],
                        db_default="oldest",
                        default="oldest",
                        max_length=10,
                    ),
                ),
                migrations.AlterField(
                    model_name="backfillpartition",
                    name="reason",
                    field=models.CharField(
                        blank=True,
                        choices=[
                            ("in_flight", "Already in progress"),
                            ("exists", "Already materialized"),
                            ("upstream_failed", "Upstream failed"),
                            ("upstream_missing", "Upstream missing"),
                            ("upstream_nonexistent", "Upstream does not exist"),
                            ("wait_timeout", "Timed out waiting"),
                            ("no_such_partition", "Partition does not exist"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
            ]
        )
    ]
