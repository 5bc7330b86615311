"""The tables of channels, alert rules and deliveries."""

import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import slicewise_server.alerts.models

_REPLACED = (
    "0001_initial",
    "0002_declared_alerts",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("alerts", name) for name in _REPLACED]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Channel",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("webhook", "Webhook"),
                            (
                                "message",
                                "Message by Apprise (mail, Slack, Teams, PagerDuty and others)",
                            ),
                        ],
                        max_length=10,
                    ),
                ),
                ("address", models.BinaryField(default=b"")),
                ("variable", models.CharField(blank=True, default="", max_length=100)),
                ("shown_address", models.CharField(blank=True, default="", max_length=500)),
                ("signing_key", models.BinaryField(default=b"")),
                ("active", models.BooleanField(default=True)),
                ("error", models.TextField(blank=True, default="")),
                ("failures", models.PositiveIntegerField(default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("variable", ""),
                            ("variable__regex", "^SLICEWISE_ALERT_[A-Z0-9_]+$"),
                            _connector="OR",
                        ),
                        name="channel_variable",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=100, unique=True)),
                ("kinds", models.JSONField(default=slicewise_server.alerts.models.no_names)),
                ("assets", models.JSONField(default=slicewise_server.alerts.models.no_names)),
                ("groups", models.JSONField(default=slicewise_server.alerts.models.no_names)),
                ("tags", models.JSONField(default=slicewise_server.alerts.models.no_names)),
                ("owners", models.JSONField(default=slicewise_server.alerts.models.no_names)),
                ("gather_seconds", models.PositiveIntegerField(default=30)),
                ("backfill_runs", models.BooleanField(default=False)),
                ("active", models.BooleanField(default=True)),
                ("declared", models.BooleanField(db_default=False, default=False)),
                ("position", models.BigIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rules",
                        to="alerts.channel",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", _ID),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("rule_name", models.CharField(blank=True, max_length=100)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("gathering", "Gathering events"),
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("failed", "Given up"),
                        ],
                        max_length=10,
                    ),
                ),
                ("first_position", models.BigIntegerField(null=True)),
                ("last_position", models.BigIntegerField(null=True)),
                ("event_count", models.PositiveIntegerField(default=0)),
                ("body", models.JSONField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("send_at", models.DateTimeField()),
                ("give_up_at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("status", models.PositiveIntegerField(null=True)),
                ("answer", models.TextField(blank=True, default="")),
                ("delivered_at", models.DateTimeField(null=True)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="alerts.channel",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="deliveries",
                        to="alerts.alertrule",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["channel", "send_at"],
                        name="delivery_to_send",
                    ),
                    models.Index(
                        condition=models.Q(("state", "gathering")),
                        fields=["send_at"],
                        name="delivery_to_close",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "gathering")),
                        fields=("rule",),
                        name="delivery_gathers_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "gathering"), ("body__isnull", False), _connector="OR"
                        ),
                        name="delivery_has_body",
                    ),
                ],
            },
        ),
    ]
