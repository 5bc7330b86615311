"""Keys of sets found at run time, and the revision that says when they change."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("partitions_app", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="partitiondefinition",
            name="revision",
            field=models.UUIDField(null=True),
        ),
        migrations.CreateModel(
            name="RuntimePartition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
            options={"ordering": ("id",)},
        ),
        migrations.AddConstraint(
            model_name="runtimepartition",
            constraint=models.UniqueConstraint(
                fields=("definition", "key"), name="runtime_partition_once"
            ),
        ),
    ]
