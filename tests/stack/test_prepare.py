"""A database with all or none of the old migrations is migrated, and any other one is refused."""

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from slicewise_server.stack import prepare

pytestmark = pytest.mark.django_db
LAST_REPLACED = {
    "accounts_app": "0006_validate_audit_actor",
    "partitions_app": "0002_runtime_partitions",
    "assets_app": "0034_labels",
    "backfills_app": "0009_labels",
}


def forget(**migrations: str) -> None:
    """Take migrations off the database's record, as if the database never had them."""
    assert MigrationRecorder.Migration.objects.filter(**migrations).delete()[0]


def migrate_by_hand() -> None:
    """Run `manage.py migrate`, which makes checks first."""
    call_command("migrate", skip_checks=False, verbosity=0)


@pytest.mark.parametrize("migrate", [prepare.migrate, migrate_by_hand])
@pytest.mark.parametrize("app", LAST_REPLACED)
def test_a_database_between_the_old_migrations_is_refused(
    app: str, migrate: Callable[[], None]
) -> None:
    forget(app=app, name__startswith="0001_squashed_")
    forget(app=app, name=LAST_REPLACED[app])
    with pytest.raises(SystemCheckError) as refusal:
        migrate()
    assert f"some of the old migrations of {app}, but not {LAST_REPLACED[app]}:" in str(
        refusal.value
    )
    assert f"has the file {app}/migrations/{LAST_REPLACED[app]}.py" in str(refusal.value)
    assert not MigrationRecorder.Migration.objects.filter(app=app, name=LAST_REPLACED[app]).exists()


def test_a_database_with_all_old_migrations_needs_no_step() -> None:
    forget(name__startswith="0001_squashed_")
    call_command("migrate", check_unapplied=True, skip_checks=False, verbosity=0)
    prepare.migrate()
    squashed = MigrationRecorder.Migration.objects.filter(name__startswith="0001_squashed_")
    assert {migration.app for migration in squashed} == set(LAST_REPLACED)


def test_a_database_without_the_migrations_of_an_app_gets_its_tables() -> None:
    call_command("migrate", "backfills_app", "zero", verbosity=0)
    assert "backfills_app_backfill" not in connection.introspection.table_names()
    prepare.migrate()
    assert "backfills_app_backfill" in connection.introspection.table_names()
