from django.db import migrations, models

# Files could say any number until now; one beyond the bounds still goes before all others.
_CLAMP = """
UPDATE assets_app_rungroup SET priority = greatest(-1000, least(1000, priority))
WHERE priority NOT BETWEEN -1000 AND 1000
"""


class Migration(migrations.Migration):
    dependencies = [("assets_app", "0021_due_by_time")]

    operations = [
        migrations.RunSQL(_CLAMP, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="rungroup",
            constraint=models.CheckConstraint(
                condition=models.Q(("priority__range", (-1000, 1000))),
                name="group_priority_in_bounds",
            ),
        ),
    ]
