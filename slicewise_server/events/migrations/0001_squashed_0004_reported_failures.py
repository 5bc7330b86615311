"""The tables of events."""

import django.contrib.postgres.indexes
import django.db.models.fields.json
import django.db.models.functions.datetime
from django.db import migrations, models

_REPLACED = (
    "0001_initial",
    "0002_partition_overdue",
    "0003_told_failures",
    "0004_reported_failures",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("events", name) for name in _REPLACED]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", _ID),
                ("position", models.BigIntegerField(null=True, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("run_failed", "Run failed"),
                            ("run_recovered", "Run succeeded after a failure"),
                            ("validation_failed", "Validation failed"),
                            ("validation_warned", "Validation warned"),
                            ("partition_overdue", "Partition overdue"),
                            ("backfill_succeeded", "Backfill succeeded"),
                            ("backfill_failed", "Backfill failed, in part or whole"),
                            ("backfill_canceled", "Backfill canceled"),
                            ("worker_lost", "Worker offline"),
                            ("bundle_broken", "Bundle has import errors"),
                            ("bundle_mended", "Bundle loads again"),
                            ("schedule_truncated", "Due partitions not queued"),
                        ],
                        max_length=30,
                    ),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("asset", models.CharField(blank=True, db_default="", default="", max_length=250)),
                ("run_id", models.BigIntegerField(null=True)),
                ("backfill_id", models.BigIntegerField(null=True)),
                ("bundle", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("worker", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("error", models.TextField(blank=True, db_default="", default="")),
                ("detail", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ("position",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("position__isnull", True)),
                        fields=["id"],
                        name="event_without_position",
                    ),
                    models.Index(fields=["at"], name="event_by_time"),
                    models.Index(fields=["asset", "position"], name="event_by_asset"),
                    models.Index(fields=["kind", "position"], name="event_by_kind"),
                    models.Index(
                        condition=models.Q(("kind", "run_failed")),
                        fields=["backfill_id", "id"],
                        name="event_by_backfill",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "worker_lost")),
                        fields=["worker", "-at"],
                        name="event_by_lost_worker",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        django.db.models.fields.json.KeyTransform("assets", "detail"),
                        condition=models.Q(("detail__has_key", "assets")),
                        name="event_by_listed_asset",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailedPartition",
            fields=[
                ("id", _ID),
                ("partition_id", models.BigIntegerField()),
                ("run_id", models.BigIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["run_id"], name="failed_partition_by_run")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("partition_id", "run_id"), name="failed_partition_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReportedFailure",
            fields=[
                ("id", _ID),
                ("run_id", models.BigIntegerField(unique=True)),
                ("backfill_id", models.BigIntegerField(null=True)),
                ("open_partitions", models.IntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="reported_failure_by_time")],
            },
        ),
    ]
