"""Labels of skip reasons, tick results and validations: the field's words."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0033_attempts_keep_inputs")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="run",
                    name="skip_reason",
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
                        db_default="",
                        default="",
                        max_length=20,
                    ),
                ),
                migrations.AlterField(
                    model_name="scheduletick",
                    name="reason",
                    field=models.CharField(
                        blank=True,
                        choices=[
                            ("nothing_ended", "Nothing new since the last tick"),
                            ("exists", "Already materialized"),
                            ("in_flight", "Already in progress"),
                            ("upstream", "Upstream is missing or not newer"),
                        ],
                        max_length=20,
                    ),
                ),
                migrations.AlterField(
                    model_name="validationresult",
                    name="when",
                    field=models.CharField(
                        choices=[
                            ("inlet", "Input, before the run"),
                            ("outlet", "Output, after the run"),
                        ],
                        max_length=10,
                    ),
                ),
            ]
        )
    ]
