"""The tables of backfills."""

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
from django.conf import settings
from django.db import migrations, models

import backfills_app.models.states

_REPLACED = (
    "0001_initial",
    "0002_plans",
    "0003_frozen_cut",
    "0004_skipped",
    "0005_stalled",
    "0006_upstream_nonexistent",
    "0007_pending_control",
    "0008_several_assets",
    "0009_labels",
    "0001_squashed_0009_labels",
    "0010_slice_is_partition",
    "0011_submission",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("backfills_app", name) for name in _REPLACED]

    dependencies = [
        ("assets_app", "0001_squashed_0040_plainer_names"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Backfill",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=250, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("creating", "Creating"),
                            ("scheduled", "Scheduled"),
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("canceling", "Canceling"),
                            ("canceled", "Canceled"),
                            ("succeeded", "Succeeded"),
                            ("partially_failed", "Partially failed"),
                            ("failed", "Failed"),
                        ],
                        db_collation="C",
                        default="creating",
                        max_length=16,
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=1000)),
                ("start_date", models.DateTimeField()),
                ("end_date", models.DateTimeField()),
                ("logical_dates", models.TextField()),
                ("chosen_by", models.JSONField(default=dict)),
                (
                    "submission",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        editable=False,
                        max_length=64,
                        null=True,
                        unique=True,
                    ),
                ),
                ("params", models.JSONField(default=dict)),
                (
                    "max_active_runs",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
                ("strategy", models.JSONField()),
                (
                    "order",
                    models.CharField(
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
                ("allow_holes", models.BooleanField(db_default=False, default=False)),
                (
                    "existing",
                    models.CharField(
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
                ("scheduled_date", models.DateTimeField(null=True)),
                ("delete_date", models.DateTimeField(null=True)),
                ("relative_fileloc", models.CharField(blank=True, max_length=1000)),
                ("origin_code", models.TextField(blank=True)),
                ("submitted_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("deleted", models.BooleanField(default=False)),
                ("run_start_date", models.DateTimeField(null=True)),
                ("run_end_date", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                ("stalled_since", models.DateTimeField(null=True)),
                ("stalled_error", models.TextField(blank=True, db_default="", default="")),
                ("try_again_at", models.DateTimeField(null=True)),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="backfills",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "code_version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.bundleversion",
                    ),
                ),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="backfill",
                        to="assets_app.rungroup",
                    ),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="backfills",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="BackfillAsset",
            fields=[
                ("id", _ID),
                ("position", models.PositiveIntegerField(default=0)),
                (
                    "role",
                    models.CharField(
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
                ("selection", models.TextField(blank=True, default="")),
                ("strategy", models.JSONField(default=backfills_app.models.states.a_run_for_each)),
                ("params", models.JSONField(default=dict)),
                ("partition", models.JSONField(null=True)),
                ("mapping", models.JSONField(null=True)),
                ("total", models.PositiveIntegerField(default=0)),
                ("expanded", models.PositiveIntegerField(default=0)),
                ("waiting", models.PositiveIntegerField(default=0)),
                ("active", models.PositiveIntegerField(default=0)),
                ("succeeded", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("canceled", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "backfill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="assets",
                        to="backfills_app.backfill",
                    ),
                ),
                (
                    "producer_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="assets_app.producerversion",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
            },
        ),
        migrations.CreateModel(
            name="BackfillPartition",
            fields=[
                ("id", _ID),
                ("position", models.PositiveIntegerField()),
                ("rank", models.PositiveIntegerField(db_default=0, default=0)),
                ("ready", models.BooleanField(db_default=True, default=True)),
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
                            ("waiting", "Waiting"),
                            ("active", "Active"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("canceled", "Canceled"),
                            ("skipped", "Skipped"),
                        ],
                        db_collation="C",
                        default="waiting",
                        max_length=10,
                    ),
                ),
                (
                    "reason",
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
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "backfill_asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="partitions",
                        to="backfills_app.backfillasset",
                    ),
                ),
                (
                    "partition",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="assets_app.assetpartition",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="backfill_partitions",
                        to="assets_app.run",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
            },
        ),
        migrations.CreateModel(
            name="EndedRun",
            fields=[
                ("id", _ID),
                (
                    "backfill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ended_runs",
                        to="backfills_app.backfill",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PendingControl",
            fields=[
                ("id", _ID),
                (
                    "verb",
                    models.CharField(
                        choices=[
                            ("withdraw", "Withdraw runs that have not begun"),
                            ("retry", "Retry"),
                            ("look_again", "Examine waiting partitions again"),
                        ],
                        max_length=10,
                    ),
                ),
                ("is_newest_code", models.BooleanField(default=False)),
                ("is_canceled_too", models.BooleanField(default=False)),
                (
                    "backfill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pending",
                        to="backfills_app.backfill",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.AddIndex(
            model_name="backfill",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ("canceled", "succeeded", "partially_failed", "failed")),
                    _negated=True,
                ),
                fields=["id"],
                name="backfill_unfinished",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfill",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "creating",
                            "scheduled",
                            "running",
                            "paused",
                            "canceling",
                            "canceled",
                            "succeeded",
                            "partially_failed",
                            "failed",
                        ],
                    )
                ),
                name="backfill_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfill",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_active_runs__gt", 0)), name="backfill_active_runs"
            ),
        ),
        migrations.AddConstraint(
            model_name="backfill",
            constraint=models.CheckConstraint(
                condition=models.Q(("order__in", ["oldest", "newest", "listed"])),
                name="backfill_order_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfill",
            constraint=models.CheckConstraint(
                condition=models.Q(("start_date__lt", models.F("end_date"))),
                name="backfill_range_not_empty",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfill",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("run_end_date__isnull", False),
                        ("state__in", ("canceled", "succeeded", "partially_failed", "failed")),
                    ),
                    models.Q(
                        models.Q(
                            ("state__in", ("canceled", "succeeded", "partially_failed", "failed")),
                            _negated=True,
                        ),
                        ("run_end_date__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="backfill_ended_when_terminal",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillasset",
            constraint=models.UniqueConstraint(
                fields=("backfill", "asset"), name="backfill_asset_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillasset",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["chosen", "upstream", "downstream"])),
                name="backfill_asset_role_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillasset",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "expanded",
                        django.db.models.expressions.CombinedExpression(
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        django.db.models.expressions.CombinedExpression(
                                            models.F("waiting"), "+", models.F("active")
                                        ),
                                        "+",
                                        models.F("succeeded"),
                                    ),
                                    "+",
                                    models.F("failed"),
                                ),
                                "+",
                                models.F("canceled"),
                            ),
                            "+",
                            models.F("skipped"),
                        ),
                    )
                ),
                name="backfill_counts_add_up",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillasset",
            constraint=models.CheckConstraint(
                condition=models.Q(("expanded__lte", models.F("total"))),
                name="backfill_expanded_within_total",
            ),
        ),
        migrations.AddIndex(
            model_name="backfillpartition",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["backfill_asset", "ready", "rank", "position"],
                name="backfill_partition_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="backfillpartition",
            index=models.Index(
                condition=models.Q(("state", "skipped")),
                fields=["backfill_asset", "reason"],
                name="backfill_partition_skipped",
            ),
        ),
        migrations.AddIndex(
            model_name="backfillpartition",
            index=models.Index(
                condition=models.Q(("run__isnull", False)),
                fields=["run"],
                name="backfill_partition_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillpartition",
            constraint=models.UniqueConstraint(
                fields=("backfill_asset", "position"), name="backfill_partition_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="backfillpartition",
            constraint=models.CheckConstraint(
                condition=models.Q(("state", "skipped"), ("reason", ""), _connector="XOR"),
                name="backfill_skip_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingcontrol",
            constraint=models.CheckConstraint(
                condition=models.Q(("verb__in", ("withdraw", "retry", "look_again"))),
                name="pending_control_verb_known",
            ),
        ),
    ]
