"""The tables of assets, schedules, runs and materializations."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from assets_app.migrations import _queue_changes, _room_in_pages, _run_transitions

_REPLACED = (
    "0001_initial",
    "0002_run_transitions",
    "0003_slices_by_making",
    "0004_asset_file",
    "0005_schedules",
    "0006_outlets",
    "0007_validations",
    "0008_reported_writes",
    "0009_ticks_and_left_out",
    "0010_cheaper_records",
    "0011_partly_published",
    "0012_asset_format",
    "0013_waiting_runs",
    "0014_run_hooks",
    "0015_frozen_upstream",
    "0016_forgotten_partitions",
    "0017_schedule_failures",
    "0018_fences",
    "0019_clearing",
    "0020_queued_by_version",
    "0021_due_by_time",
    "0022_group_priority",
    "0023_platform_losses",
    "0024_upstream_nonexistent",
    "0025_pause_of_schedule",
    "0026_schedules_that_join_times",
    "0027_leases",
    "0028_looks_at_waiting_runs",
    "0029_queue_heads",
    "0031_cheaper_inputs",
    "0032_fewer_neighbours",
    "0033_attempts_keep_inputs",
    "0034_labels",
    "0001_squashed_0034_labels",
    "0035_slice_is_partition",
    "0036_declared_alerts",
    "0037_steps",
    "0038_lateness",
    "0039_totals",
    "0040_plainer_names",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("assets_app", name) for name in _REPLACED]

    dependencies = [
        ("partitions_app", "0001_squashed_0002_runtime_partitions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Bundle",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=200, unique=True)),
                ("path", models.TextField()),
                ("error", models.TextField(blank=True)),
                ("checked_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Gateway",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=200, unique=True)),
                ("host", models.CharField(max_length=200)),
                ("process_id", models.PositiveIntegerField()),
                (
                    "queue",
                    models.CharField(
                        choices=[("scheduled", "Scheduled"), ("backfill", "Backfill")],
                        max_length=10,
                    ),
                ),
                ("slots", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                ("draining", models.BooleanField(default=False)),
                ("spark_away_since", models.DateTimeField(null=True)),
                ("closed_slots", models.PositiveIntegerField(db_default=0, default=0)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="RunAttempt",
            fields=[
                ("id", _ID),
                ("number", models.PositiveIntegerField()),
                ("token", models.UUIDField(unique=True)),
                ("fence", models.PositiveIntegerField(db_default=1, default=1)),
                ("engine", models.CharField(default="connect", max_length=10)),
                ("spark_session_id", models.UUIDField(null=True)),
                ("application_id", models.CharField(blank=True, max_length=200)),
                ("application_ui", models.CharField(blank=True, max_length=500)),
                ("may_go_on", models.BooleanField(db_default=False, default=False)),
                ("clear_at", models.DateTimeField(null=True)),
                ("was_alone", models.BooleanField(db_default=False, default=False)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("lost", "Lost"),
                        ],
                        max_length=10,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("traceback", models.TextField(blank=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("found", models.JSONField(default=list)),
                ("partly", models.JSONField(null=True)),
                (
                    "gateway",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="assets_app.gateway",
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", _ID),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("schedule", "Schedule"),
                            ("upstream", "Upstream"),
                            ("manual", "Manual"),
                            ("backfill", "Backfill"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        choices=[("scheduled", "Scheduled"), ("backfill", "Backfill")],
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("queued", "Queued"),
                            ("dispatched", "Dispatched"),
                            ("running", "Running"),
                            ("publishing", "Publishing"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("canceling", "Canceling"),
                            ("canceled", "Canceled"),
                            ("skipped", "Skipped"),
                        ],
                        db_collation="C",
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("selection", models.TextField(blank=True)),
                ("partition_count", models.PositiveIntegerField()),
                ("params", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("queued_at", models.DateTimeField(null=True)),
                ("dispatched_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("attempt_count", models.PositiveIntegerField(default=0)),
                ("code_failures", models.PositiveIntegerField(default=0)),
                ("platform_failures", models.PositiveIntegerField(default=0)),
                ("lost_attempts", models.PositiveIntegerField(db_default=0, default=0)),
                ("error", models.TextField(blank=True)),
                (
                    "error_kind",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("code", "The asset's code"),
                            ("platform", "The platform"),
                            ("data", "The data that it reads"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "skip_reason",
                    models.CharField(
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
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Asset",
            fields=[
                ("id", _ID),
                ("name", models.CharField(db_collation="C", max_length=250, unique=True)),
                ("uri", models.TextField(blank=True)),
                ("canonical_uri", models.TextField(blank=True, db_index=True)),
                ("kind", models.CharField(blank=True, max_length=100)),
                ("format", models.CharField(blank=True, max_length=20)),
                ("group", models.CharField(blank=True, max_length=200)),
                ("owners", models.JSONField(default=list)),
                ("tags", models.JSONField(default=list)),
                ("alerts", models.JSONField(default=list)),
                ("columns", models.JSONField(null=True)),
                ("outlet_validations", models.JSONField(default=list)),
                ("description", models.TextField(blank=True)),
                ("schedule", models.JSONField(null=True)),
                ("file", models.CharField(blank=True, max_length=1000)),
                ("warnings", models.JSONField(default=list)),
                ("paused", models.BooleanField(default=False)),
                ("active", models.BooleanField(default=True)),
                ("activated_at", models.DateTimeField(auto_now_add=True)),
                (
                    "partition_definition",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assets",
                        to="partitions_app.partitiondefinition",
                    ),
                ),
                (
                    "bundle",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="assets",
                        to="assets_app.bundle",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="AssetPartition",
            fields=[
                ("id", _ID),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("key", models.CharField(db_collation="C", max_length=1000)),
                ("window_start", models.DateTimeField(null=True)),
                ("window_end", models.DateTimeField(null=True)),
                (
                    "segment",
                    models.CharField(blank=True, db_collation="C", default="", max_length=1000),
                ),
                ("bucket", models.DateField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("missing", "Missing"),
                            ("materialized", "Materialized"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("skipped", "Skipped"),
                        ],
                        db_collation="C",
                        default="missing",
                        max_length=12,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=0)),
                ("forgotten_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("due_again", models.BooleanField(default=False)),
                ("due_at", models.DateTimeField(null=True)),
                ("rows", models.BigIntegerField(null=True)),
                ("bytes", models.BigIntegerField(null=True)),
                ("materialized_at", models.DateTimeField(null=True)),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="partitions",
                        to="assets_app.asset",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BundleVersion",
            fields=[
                ("id", _ID),
                ("digest", models.CharField(max_length=64)),
                ("archive", models.BinaryField()),
                ("import_errors", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "bundle",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="assets_app.bundle",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.AddField(
            model_name="bundle",
            name="current_version",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="assets_app.bundleversion",
            ),
        ),
        migrations.CreateModel(
            name="FreshnessWatch",
            fields=[
                ("id", _ID),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("freshness", models.JSONField()),
                ("watched_until", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                (
                    "asset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="freshness_watch",
                        to="assets_app.asset",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "freshness watches",
            },
        ),
        migrations.CreateModel(
            name="LatePartition",
            fields=[
                ("id", _ID),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("key", models.CharField(db_collation="C", max_length=1000)),
                ("window_start", models.DateTimeField()),
                ("window_end", models.DateTimeField()),
                ("late_at", models.DateTimeField()),
                ("overdue_at", models.DateTimeField()),
                ("announced_at", models.DateTimeField(null=True)),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="late_partitions",
                        to="assets_app.asset",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="lease",
                        serialize=False,
                        to="assets_app.runattempt",
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="runattempt",
            name="keeps_inputs_of",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="assets_app.asset",
            ),
        ),
        migrations.CreateModel(
            name="AttemptStep",
            fields=[
                ("id", _ID),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("setup", "Set-up"),
                            ("function", "Function"),
                            ("teardown", "Tear-down"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                            ("not_run", "Not run"),
                        ],
                        max_length=10,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
            },
        ),
        migrations.CreateModel(
            name="AttemptOutlet",
            fields=[
                ("id", _ID),
                ("name_on_disk", models.CharField(max_length=100)),
                ("root", models.TextField()),
                ("staging", models.TextField()),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outlets",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AttemptInput",
            fields=[
                ("id", _ID),
                ("version", models.PositiveIntegerField()),
                (
                    "partition",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="read_by",
                        to="assets_app.assetpartition",
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="inputs",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PartitionCount",
            fields=[
                ("id", _ID),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("bucket", models.DateField(null=True)),
                (
                    "segment",
                    models.CharField(blank=True, db_collation="C", default="", max_length=1000),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("missing", "Missing"),
                            ("materialized", "Materialized"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("skipped", "Skipped"),
                        ],
                        db_collation="C",
                        max_length=12,
                    ),
                ),
                ("count", models.BigIntegerField(default=0)),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Producer",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=250, unique=True)),
                (
                    "bundle",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="producers",
                        to="assets_app.bundle",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="asset",
            name="producer",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="assets",
                to="assets_app.producer",
            ),
        ),
        migrations.CreateModel(
            name="ProducerVersion",
            fields=[
                ("id", _ID),
                ("digest", models.CharField(max_length=64)),
                ("definition", models.JSONField()),
                ("source", models.TextField()),
                ("file", models.CharField(max_length=1000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "bundle_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.bundleversion",
                    ),
                ),
                (
                    "producer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="assets_app.producer",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.AddField(
            model_name="producer",
            name="current_version",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="assets_app.producerversion",
            ),
        ),
        migrations.CreateModel(
            name="QueueChange",
            fields=[
                ("id", _ID),
                (
                    "queue",
                    models.CharField(
                        blank=True,
                        choices=[("scheduled", "Scheduled"), ("backfill", "Backfill")],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                ("group_id", models.BigIntegerField(null=True)),
                ("producer_version_id", models.BigIntegerField(null=True)),
                ("run_id", models.BigIntegerField(null=True)),
                ("producer_id", models.BigIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("group_id__isnull", False), ("queue", "")),
                            models.Q(("producer_id__isnull", False), ("queue", "")),
                            models.Q(
                                ("group_id__isnull", False), ("producer_version_id__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="queue_change_of_something",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="runattempt",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="attempts",
                to="assets_app.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="asset",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="assets_app.asset",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="producer_version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="assets_app.producerversion",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="requested_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="LateInput",
            fields=[
                ("id", _ID),
                ("key", models.CharField(db_collation="C", max_length=1000)),
                (
                    "reason",
                    models.CharField(
                        choices=[("missing", "Missing"), ("old", "Old")], max_length=10
                    ),
                ),
                (
                    "effect",
                    models.CharField(
                        choices=[
                            ("schedule", "As scheduled"),
                            ("stale", "Partition becomes stale"),
                            ("remake", "Partition is materialized again"),
                        ],
                        max_length=10,
                    ),
                ),
                ("missing", models.PositiveIntegerField(default=0)),
                ("keys", models.JSONField(default=list)),
                ("newest_at", models.DateTimeField(null=True)),
                (
                    "upstream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="late_inputs",
                        to="assets_app.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AwaitedPartition",
            fields=[
                ("id", _ID),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("key", models.CharField(db_collation="C", max_length=1000)),
                ("look_at", models.DateTimeField(null=True)),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="awaited_partitions",
                        to="assets_app.run",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="assetpartition",
            name="held_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="held_partitions",
                to="assets_app.run",
            ),
        ),
        migrations.AddField(
            model_name="assetpartition",
            name="last_run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="assets_app.run",
            ),
        ),
        migrations.CreateModel(
            name="RunGroup",
            fields=[
                ("id", _ID),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("request", "Request"),
                            ("schedule", "Schedule"),
                            ("backfill", "Backfill"),
                        ],
                        max_length=10,
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=300)),
                (
                    "queue",
                    models.CharField(
                        choices=[("scheduled", "Scheduled"), ("backfill", "Backfill")],
                        default="scheduled",
                        max_length=10,
                    ),
                ),
                ("priority", models.IntegerField(default=0)),
                ("max_active_runs", models.PositiveIntegerField(null=True)),
                ("paused", models.BooleanField(default=False)),
                ("in_flight", models.JSONField(default=list)),
                ("earlier_missing", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="assets_app.rungroup",
            ),
        ),
        migrations.CreateModel(
            name="QueueHead",
            fields=[
                ("id", _ID),
                (
                    "queue",
                    models.CharField(
                        choices=[("scheduled", "Scheduled"), ("backfill", "Backfill")],
                        max_length=10,
                    ),
                ),
                ("needs_spark", models.BooleanField()),
                ("priority", models.IntegerField()),
                ("max_active_runs", models.IntegerField(null=True)),
                ("group_priority", models.IntegerField()),
                ("group_max_active_runs", models.IntegerField(null=True)),
                ("paused", models.BooleanField()),
                (
                    "producer",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="assets_app.producer",
                    ),
                ),
                (
                    "producer_version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="assets_app.producerversion",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="assets_app.run",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="assets_app.rungroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FrozenUpstream",
            fields=[
                ("id", _ID),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "partition_definition",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="partitions_app.partitiondefinition",
                    ),
                ),
                (
                    "producer_version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.producerversion",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="frozen_upstream",
                        to="assets_app.rungroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunHook",
            fields=[
                ("id", _ID),
                (
                    "option",
                    models.CharField(
                        choices=[
                            ("on_success", "After a run that has succeeded"),
                            ("on_failure", "After a run that has failed"),
                        ],
                        max_length=10,
                    ),
                ),
                ("sent_at", models.DateTimeField()),
                ("begun_at", models.DateTimeField(null=True)),
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hook",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunLog",
            fields=[
                ("id", _ID),
                ("sequence", models.PositiveIntegerField()),
                (
                    "step",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("setup", "Set-up"),
                            ("function", "Function"),
                            ("teardown", "Tear-down"),
                        ],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                ("text", models.TextField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="logs",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
            options={
                "ordering": ("sequence",),
            },
        ),
        migrations.CreateModel(
            name="RunPartition",
            fields=[
                ("id", _ID),
                ("position", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("skipped", "Skipped"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("path", models.TextField(blank=True)),
                ("rows", models.BigIntegerField(null=True)),
                ("bytes", models.BigIntegerField(null=True)),
                ("error", models.TextField(blank=True, db_default="", default="")),
                (
                    "partition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="run_partitions",
                        to="assets_app.assetpartition",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="partitions",
                        to="assets_app.run",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", _ID),
                ("rule", models.JSONField(null=True)),
                ("by_time", models.BooleanField()),
                ("next_at", models.DateTimeField(null=True)),
                ("handled_until", models.DateTimeField()),
                (
                    "began_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("paused_at", models.DateTimeField(null=True)),
                ("unpaused_at", models.DateTimeField(null=True)),
                ("handled_before_pause", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, db_default="", default="")),
                ("failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("retry_at", models.DateTimeField(null=True)),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedule",
                        to="assets_app.rungroup",
                    ),
                ),
                (
                    "producer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedule",
                        to="assets_app.producer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduleTick",
            fields=[
                ("id", _ID),
                ("at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("count", models.PositiveIntegerField(default=1)),
                (
                    "reason",
                    models.CharField(
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
                ("queued", models.PositiveIntegerField(default=0)),
                ("existing", models.PositiveIntegerField(default=0)),
                ("in_flight", models.PositiveIntegerField(default=0)),
                ("passed_over", models.PositiveIntegerField(default=0)),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ticks",
                        to="assets_app.schedule",
                    ),
                ),
            ],
            options={
                "ordering": ("-at",),
            },
        ),
        migrations.AddField(
            model_name="run",
            name="tick",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="assets_app.scheduletick",
            ),
        ),
        migrations.CreateModel(
            name="ScheduleTruncation",
            fields=[
                ("id", _ID),
                ("at", models.DateTimeField()),
                ("count", models.PositiveBigIntegerField()),
                ("queued", models.PositiveIntegerField()),
                ("first", models.CharField(db_collation="C", max_length=1000)),
                ("last", models.CharField(db_collation="C", max_length=1000)),
                ("start", models.CharField(blank=True, max_length=100)),
                ("end", models.CharField(blank=True, max_length=100)),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="truncations",
                        to="assets_app.asset",
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-id"),
            },
        ),
        migrations.CreateModel(
            name="ValidationResult",
            fields=[
                ("id", _ID),
                ("position", models.PositiveIntegerField()),
                (
                    "when",
                    models.CharField(
                        choices=[
                            ("inlet", "Input, before the run"),
                            ("outlet", "Output, after the run"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                (
                    "severity",
                    models.CharField(
                        choices=[("error", "Error"), ("warn", "Warning")], max_length=10
                    ),
                ),
                ("passed", models.BooleanField()),
                ("evaluated", models.BooleanField()),
                ("message", models.TextField(blank=True)),
                ("observed", models.JSONField(default=dict)),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="validations",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
            },
        ),
        migrations.CreateModel(
            name="WriteReport",
            fields=[
                ("id", _ID),
                ("selection", models.TextField(blank=True)),
                ("partition_count", models.PositiveIntegerField()),
                ("metadata", models.JSONField(default=dict)),
                ("reported_by_name", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField()),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="write_reports",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "reported_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Outbox",
            fields=[
                ("id", _ID),
                ("not_before", models.DateTimeField(null=True)),
                ("failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.run",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unevaluated_writes",
                        to="assets_app.schedule",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.writereport",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "outbox entries",
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="Materialization",
            fields=[
                ("id", _ID),
                ("version", models.PositiveIntegerField()),
                ("rows", models.BigIntegerField(null=True)),
                ("bytes", models.BigIntegerField(null=True)),
                ("total_files", models.BigIntegerField(null=True)),
                ("total_rows", models.BigIntegerField(null=True)),
                ("total_bytes", models.BigIntegerField(null=True)),
                ("metadata", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                (
                    "attempt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.runattempt",
                    ),
                ),
                (
                    "partition",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="materializations",
                        to="assets_app.assetpartition",
                    ),
                ),
                (
                    "producer_version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.producerversion",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="materializations",
                        to="assets_app.run",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="materializations",
                        to="assets_app.writereport",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="AssetDependency",
            fields=[
                ("id", _ID),
                ("inlet", models.BooleanField(default=False)),
                ("scheduling", models.BooleanField(default=False)),
                ("fresh", models.BooleanField(db_default=False, default=False)),
                ("mapping", models.JSONField(null=True)),
                (
                    "downstream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="upstream_edges",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "upstream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="downstream_edges",
                        to="assets_app.asset",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "asset dependencies",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("upstream", "downstream"), name="dependency_once"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="bundleversion",
            constraint=models.UniqueConstraint(
                fields=("bundle", "digest"), name="bundle_version_digest"
            ),
        ),
        migrations.AddIndex(
            model_name="freshnesswatch",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False)),
                fields=["next_at"],
                name="freshness_watch_next",
            ),
        ),
        migrations.AddIndex(
            model_name="latepartition",
            index=models.Index(
                condition=models.Q(("announced_at__isnull", True)),
                fields=["overdue_at"],
                name="late_not_announced",
            ),
        ),
        migrations.AddConstraint(
            model_name="latepartition",
            constraint=models.UniqueConstraint(
                fields=("asset", "identity", "key"), name="late_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="attemptstep",
            constraint=models.UniqueConstraint(
                fields=("attempt", "position"), name="step_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="attemptstep",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", True),
                        ("started_at__isnull", False),
                        ("state", "running"),
                    ),
                    models.Q(
                        ("ended_at__isnull", True),
                        ("started_at__isnull", True),
                        ("state", "not_run"),
                    ),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("started_at__isnull", False),
                        ("state__in", ("succeeded", "failed", "stopped")),
                    ),
                    _connector="OR",
                ),
                name="step_times_of_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="attemptoutlet",
            constraint=models.UniqueConstraint(
                fields=("attempt", "asset"), name="attempt_outlet_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="attemptinput",
            constraint=models.UniqueConstraint(
                fields=("attempt", "partition"), name="attempt_input_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="partitioncount",
            constraint=models.UniqueConstraint(
                fields=("asset", "identity", "bucket", "segment", "state"),
                name="partition_count_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="runattempt",
            index=models.Index(
                condition=models.Q(("clear_at__isnull", False)),
                fields=["clear_at"],
                name="attempt_to_clear",
            ),
        ),
        migrations.AddIndex(
            model_name="runattempt",
            index=models.Index(
                condition=models.Q(("may_go_on", True)), fields=["run"], name="attempt_may_go_on"
            ),
        ),
        migrations.AddIndex(
            model_name="runattempt",
            index=models.Index(
                condition=models.Q(("keeps_inputs_of__isnull", False)),
                fields=["keeps_inputs_of"],
                name="attempt_keeps_inputs",
            ),
        ),
        migrations.AddConstraint(
            model_name="runattempt",
            constraint=models.UniqueConstraint(fields=("run", "number"), name="attempt_number"),
        ),
        migrations.AddConstraint(
            model_name="runattempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("run",),
                name="attempt_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="runattempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("outcome", "")),
                    models.Q(("ended_at__isnull", False), models.Q(("outcome", ""), _negated=True)),
                    _connector="OR",
                ),
                name="attempt_outcome_when_ended",
            ),
        ),
        migrations.AddConstraint(
            model_name="runattempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("clear_at__isnull", True), ("ended_at__isnull", False), _connector="OR"
                ),
                name="attempt_cleared_when_ended",
            ),
        ),
        migrations.AddConstraint(
            model_name="lateinput",
            constraint=models.UniqueConstraint(
                fields=("run", "key", "upstream"), name="late_input_once"
            ),
        ),
        migrations.AddIndex(
            model_name="awaitedpartition",
            index=models.Index(
                condition=models.Q(("look_at__isnull", False)),
                fields=["look_at"],
                name="awaited_partition_to_look_at",
            ),
        ),
        migrations.AddIndex(
            model_name="awaitedpartition",
            index=models.Index(
                condition=models.Q(("look_at__isnull", False)),
                fields=["asset", "identity", "key"],
                name="awaited_partition_by_key",
            ),
        ),
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                fields=["asset", "identity", "window_start", "segment"], name="partition_by_window"
            ),
        ),
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                condition=models.Q(("held_by__isnull", False)),
                fields=["held_by"],
                name="partition_held",
            ),
        ),
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                condition=models.Q(("held_by__isnull", False)),
                fields=["asset", "identity", "window_start"],
                name="partition_held_by_asset",
            ),
        ),
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                condition=models.Q(("version__gt", 0), ("window_start__isnull", True)),
                fields=["asset", "identity", "materialized_at", "id"],
                name="partition_by_making",
            ),
        ),
        migrations.AddIndex(
            model_name="assetpartition",
            index=models.Index(
                condition=models.Q(("due_again", True), ("held_by__isnull", True)),
                fields=["due_at"],
                name="partition_due_by_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="assetpartition",
            constraint=models.UniqueConstraint(
                fields=("asset", "identity", "key"), name="partition_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="assetpartition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["missing", "materialized", "failed", "canceled", "skipped"])
                ),
                name="partition_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="assetpartition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "materialized"), _negated=True),
                    ("version__gt", 0),
                    _connector="OR",
                ),
                name="partition_materialized_has_version",
            ),
        ),
        migrations.AddConstraint(
            model_name="rungroup",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("max_active_runs__isnull", True), ("max_active_runs__gt", 0), _connector="OR"
                ),
                name="group_max_active_runs_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="rungroup",
            constraint=models.CheckConstraint(
                condition=models.Q(("priority__range", (-1000, 1000))),
                name="group_priority_in_bounds",
            ),
        ),
        migrations.AddIndex(
            model_name="queuehead",
            index=models.Index(fields=["producer"], name="queue_head_by_producer"),
        ),
        migrations.AddConstraint(
            model_name="queuehead",
            constraint=models.UniqueConstraint(
                fields=("group", "producer_version", "queue"), name="queue_head_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="frozenupstream",
            constraint=models.UniqueConstraint(
                fields=("group", "producer_version", "asset"), name="frozen_upstream_once"
            ),
        ),
        migrations.AddIndex(
            model_name="runhook",
            index=models.Index(
                condition=models.Q(("begun_at__isnull", True)),
                fields=["sent_at"],
                name="hook_not_begun",
            ),
        ),
        migrations.AddConstraint(
            model_name="runhook",
            constraint=models.CheckConstraint(
                condition=models.Q(("option__in", ["on_success", "on_failure"])),
                name="hook_option_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="runlog",
            constraint=models.UniqueConstraint(fields=("attempt", "sequence"), name="log_sequence"),
        ),
        migrations.AddConstraint(
            model_name="runpartition",
            constraint=models.UniqueConstraint(
                fields=("run", "position"), name="run_partition_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="runpartition",
            constraint=models.UniqueConstraint(
                fields=("run", "partition"), name="run_partition_once"
            ),
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False)),
                fields=["next_at"],
                name="schedule_next_tick",
            ),
        ),
        migrations.AddIndex(
            model_name="scheduletick",
            index=models.Index(fields=["schedule", "-at"], name="tick_by_schedule"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["group", "id"], name="run_by_group"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["asset", "-id"], name="run_by_asset"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("not_before__isnull", True), ("state", "queued")),
                fields=["queue", "group", "producer_version", "id"],
                name="run_ready",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("not_before__isnull", False), ("state", "queued")),
                fields=["not_before"],
                name="run_delayed",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ("succeeded", "failed", "canceled", "skipped")), _negated=True
                ),
                fields=["state", "id"],
                name="run_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "failed")), fields=["-ended_at"], name="run_failed"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "failed")),
                fields=["group", "id"],
                name="run_failed_by_group",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("tick__isnull", False)),
                fields=["tick", "id"],
                name="run_by_tick",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "waiting",
                            "queued",
                            "dispatched",
                            "running",
                            "publishing",
                            "succeeded",
                            "failed",
                            "canceling",
                            "canceled",
                            "skipped",
                        ],
                    )
                ),
                name="run_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", False),
                        ("state__in", ("succeeded", "failed", "canceled", "skipped")),
                    ),
                    models.Q(
                        models.Q(
                            ("state__in", ("succeeded", "failed", "canceled", "skipped")),
                            _negated=True,
                        ),
                        ("ended_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="run_ended_when_terminal",
            ),
        ),
        migrations.AddIndex(
            model_name="scheduletruncation",
            index=models.Index(fields=["at"], name="schedule_truncation_by_time"),
        ),
        migrations.AddConstraint(
            model_name="scheduletruncation",
            constraint=models.UniqueConstraint(
                fields=("asset", "first", "last", "count"), name="schedule_truncation_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="validationresult",
            constraint=models.UniqueConstraint(
                fields=("attempt", "position"), name="validation_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="validationresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("severity__in", ("error", "warn")), ("when__in", ("inlet", "outlet"))
                ),
                name="validation_words_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="outbox",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("report__isnull", True), ("run__isnull", False)),
                    models.Q(("report__isnull", False), ("run__isnull", True)),
                    _connector="OR",
                ),
                name="outbox_run_or_report",
            ),
        ),
        migrations.AddConstraint(
            model_name="outbox",
            constraint=models.UniqueConstraint(
                fields=("run", "report", "schedule"), name="outbox_once", nulls_distinct=False
            ),
        ),
        migrations.AddIndex(
            model_name="materialization",
            index=models.Index(
                condition=models.Q(("report__isnull", False)),
                fields=["report"],
                name="materialization_by_report",
            ),
        ),
        migrations.AddConstraint(
            model_name="materialization",
            constraint=models.UniqueConstraint(
                fields=("partition", "version"), name="materialization_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="materialization",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("attempt__isnull", False),
                        ("producer_version__isnull", False),
                        ("report__isnull", True),
                        ("run__isnull", False),
                    ),
                    models.Q(
                        ("attempt__isnull", True),
                        ("producer_version__isnull", True),
                        ("report__isnull", False),
                        ("run__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="materialization_by_run_or_report",
            ),
        ),
        migrations.RunSQL(_room_in_pages.RUN_PARTITIONS, migrations.RunSQL.noop),
        migrations.RunSQL(_room_in_pages.LEASES, migrations.RunSQL.noop),
        migrations.RunSQL(_run_transitions.CREATE_TRIGGER, _run_transitions.DROP_TRIGGER),
        migrations.RunSQL(_queue_changes.CREATE_TRIGGERS, _queue_changes.DROP_TRIGGERS),
    ]
