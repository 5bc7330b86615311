import django.db.models.deletion
from django.db import migrations, models

# A row of a run is changed twice: when its data is staged, and when it is recorded. With room in
# their pages, no index is written for that.
_ROOM = "ALTER TABLE assets_app_runpartition SET (fillfactor = 50)"
_NO_ROOM = "ALTER TABLE assets_app_runpartition RESET (fillfactor)"


class Migration(migrations.Migration):
    dependencies = [
        ("assets_app", "0009_ticks_and_left_out"),
    ]

    operations = [
        migrations.RunSQL(_ROOM, _NO_ROOM),
        migrations.AlterField(
            model_name="assetpartition",
            name="asset",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="slices",
                to="assets_app.asset",
            ),
        ),
        migrations.AlterField(
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
        migrations.AlterField(
            model_name="materialization",
            name="attempt",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="assets_app.runattempt",
            ),
        ),
        migrations.AlterField(
            model_name="materialization",
            name="producer_version",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="assets_app.producerversion",
            ),
        ),
    ]
