"""What validations saw, and what assets declare of their data."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0006_outlets")]

    operations = [
        migrations.AddField(
            model_name="asset",
            name="outlet_validations",
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name="ValidationResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                (
                    "when",
                    models.CharField(
                        choices=[
                            ("inlet", "Before, of what it read"),
                            ("outlet", "After, of what it wrote"),
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
            options={"ordering": ("position",)},
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
                condition=Q(when__in=("inlet", "outlet"), severity__in=("error", "warn")),
                name="validation_words_known",
            ),
        ),
    ]
