"""The tables of partition definitions, and of partitions that are found at run time."""

import django.db.models.deletion
from django.db import migrations, models

_REPLACED = (
    "0001_initial",
    "0002_runtime_partitions",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("partitions_app", name) for name in _REPLACED]
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="PartitionDefinition",
            fields=[
                ("id", _ID),
                ("kind", models.CharField(max_length=20)),
                ("spec", models.JSONField()),
                ("fingerprint", models.CharField(max_length=64, unique=True)),
                ("identity", models.CharField(db_collation="C", max_length=16)),
                ("revision", models.UUIDField(null=True)),
            ],
            options={"ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="RuntimePartition",
            fields=[
                ("id", _ID),
                ("key", models.CharField(db_collation="C", max_length=1000)),
                ("content", models.JSONField()),
                ("label", models.TextField()),
                ("added_by", models.BigIntegerField(null=True)),
                ("added_at", models.DateTimeField()),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runtime_partitions",
                        to="partitions_app.partitiondefinition",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("definition", "key"), name="runtime_partition_once"
                    )
                ],
            },
        ),
    ]
