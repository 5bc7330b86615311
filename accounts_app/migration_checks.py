"""The check that a database has all or none of the migrations that a squashed one replaces.

The files of the replaced migrations are gone. Django leaves an app out whose migrations a database
has in part: `migrate` changes nothing of the app and succeeds, or fails at a table of another app.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

MigrationKey = tuple[str, str]


@register(Tags.database)
def check_replaced_migrations(
    *, databases: Iterable[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error for each app of which a database has only some of the replaced migrations."""
    loader = MigrationLoader(None)
    return [
        error
        for alias in databases or ()
        for error in _errors(
            loader, set(MigrationRecorder(connections[alias]).applied_migrations())
        )
    ]


def _errors(loader: MigrationLoader, applied: set[MigrationKey]) -> Iterator[CheckMessage]:
    for (app, _name), migration in sorted(loader.replacements.items()):
        missing = [key for key in migration.replaces if key not in applied]
        is_partial = 0 < len(missing) < len(migration.replaces)
        # Django applies the replaced migrations themselves where their files are still there.
        if is_partial and not all(key in loader.disk_migrations for key in missing):
            yield _error(app, missing[0][1], migration.replaces[-1][1])


def _error(app: str, first_missing: str, last_replaced: str) -> CheckMessage:
    folder = apps.get_app_config(app).name.replace(".", "/")
    return Error(
        f"The database has some of the old migrations of {app}, but not {first_missing}: this "
        "version cannot migrate it. Nothing was changed.",
        hint=(
            f"Run `manage.py migrate` with the last version of Slicewise that has the file "
            f"{folder}/migrations/{last_replaced}.py, if there is one, then migrate with this "
            "version. See docs/guides/operating.md, When Slicewise is upgraded."
        ),
        id="slicewise.E001",
    )
