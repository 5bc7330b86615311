"""The tables of lineage."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

_REPLACED = (
    "0001_initial",
    "0002_refused_events",
    "0003_left_out_edges",
    "0004_truncated_jobs_and_reporters",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("lineage", name) for name in _REPLACED]

    dependencies = [
        ("assets_app", "0001_squashed_0040_plainer_names"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LineageReceiver",
            fields=[
                ("id", _ID),
                ("failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("error", models.TextField(db_default="", default="")),
                ("retry_at", models.DateTimeField(null=True)),
                ("claim", models.UUIDField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="TruncatedJob",
            fields=[
                ("id", _ID),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("job_namespace", models.TextField()),
                ("job_name", models.TextField()),
                ("run_id", models.UUIDField(null=True)),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ("-at", "-id"),
                "indexes": [models.Index(fields=["at"], name="truncated_job_by_time")],
            },
        ),
        migrations.CreateModel(
            name="LineageEdge",
            fields=[
                ("id", _ID),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("upstream_namespace", models.TextField()),
                ("upstream_name", models.TextField()),
                ("downstream_namespace", models.TextField()),
                ("downstream_name", models.TextField()),
                ("job_namespace", models.TextField()),
                ("job_name", models.TextField()),
                ("last_run_id", models.UUIDField(null=True)),
                ("first_seen_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                (
                    "downstream",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edges_from_datasets",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "upstream",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edges_to_datasets",
                        to="assets_app.asset",
                    ),
                ),
            ],
            options={
                "ordering": ("-last_seen_at", "-id"),
                "indexes": [models.Index(fields=["last_seen_at"], name="lineage_edge_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("upstream__isnull", False),
                            ("downstream__isnull", False),
                            _connector="OR",
                        ),
                        name="lineage_edge_of_asset",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LineageEvent",
            fields=[
                ("id", _ID),
                ("is_end", models.BooleanField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("START", "Start"),
                            ("COMPLETE", "Complete"),
                            ("FAIL", "Fail"),
                            ("ABORT", "Abort"),
                        ],
                        max_length=8,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("is_open", models.BooleanField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("refusals", models.PositiveIntegerField(db_default=0, default=0)),
                ("error", models.TextField(db_default="", default="")),
                (
                    "attempt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="assets_app.runattempt",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("sent_at__isnull", True)),
                        fields=["id"],
                        name="lineage_to_send",
                    ),
                    models.Index(
                        condition=models.Q(("not_before__isnull", True), ("sent_at__isnull", True)),
                        fields=["id"],
                        name="lineage_never_sent",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("not_before__isnull", False), ("sent_at__isnull", True)
                        ),
                        fields=["not_before"],
                        name="lineage_refused",
                    ),
                    models.Index(
                        condition=models.Q(("is_open", True)),
                        fields=["attempt"],
                        name="lineage_open",
                    ),
                    models.Index(
                        condition=models.Q(("sent_at__isnull", False)),
                        fields=["sent_at"],
                        name="lineage_sent",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "is_end"), name="lineage_start_end_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReceivedWrite",
            fields=[
                ("id", _ID),
                ("run_id", models.UUIDField()),
                ("selection", models.TextField()),
                ("selection_digest", models.CharField(max_length=64)),
                ("problem", models.TextField(db_default="", default="")),
                ("job_namespace", models.TextField()),
                ("job_name", models.TextField()),
                ("producer", models.TextField()),
                (
                    "received_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="received_writes",
                        to="assets_app.asset",
                    ),
                ),
                (
                    "report",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="received_write",
                        to="assets_app.writereport",
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
                "indexes": [models.Index(fields=["received_at"], name="received_write_by_time")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("asset", "run_id", "selection_digest"), name="received_write_once"
                    )
                ],
            },
        ),
    ]
