"""The number of partitions that a tick skips for a later one has the name of its reason."""

from django.db import migrations


class Migration(migrations.Migration):
    """Rename one column."""

    dependencies = [("assets_app", "0001_squashed_0040_plainer_names")]
    operations = [migrations.RenameField("scheduletick", "passed_over", "superseded")]
