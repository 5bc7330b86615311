"""Empty the forms and queries that axes has stored with failed sign-ins: passwords are in them."""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def empty_forms(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    attempts = apps.get_model("axes", "AccessAttempt").objects.using(schema_editor.connection.alias)
    attempts.update(get_data="", post_data="")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts_app", "0004_audit_trail_stays"),
        ("axes", "0010_accessattemptexpiration"),
    ]
    operations = [migrations.RunPython(empty_forms, migrations.RunPython.noop, elidable=True)]
