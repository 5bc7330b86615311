"""A database with all or none of the old migrations is migrated, and any other one is refused."""

from collections.abc import Callable
from typing import Any

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
    "assets_app": "0040_plainer_names",
    "backfills_app": "0011_submission",
    "alerts": "0002_declared_alerts",
    "events": "0004_reported_failures",
    "lineage": "0004_truncated_jobs_and_reporters",
}
SQUASHED = {app: f"0001_squashed_{name}" for app, name in LAST_REPLACED.items()}
SERVER_APPS = ("alerts", "events", "lineage")


def forget(**migrations: Any) -> None:
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
    forget(app=app, name=SQUASHED[app])
    forget(app=app, name=LAST_REPLACED[app])
    with pytest.raises(SystemCheckError) as refusal:
        migrate()
    assert f"some of the old migrations of {app}, but not {LAST_REPLACED[app]}:" in str(
        refusal.value
    )
    folder = f"slicewise_server/{app}" if app in SERVER_APPS else app
    assert f"has the file {folder}/migrations/{LAST_REPLACED[app]}.py" in str(refusal.value)
    assert not MigrationRecorder.Migration.objects.filter(app=app, name=LAST_REPLACED[app]).exists()


def test_a_database_with_all_old_migrations_needs_no_step() -> None:
    forget(name__in=SQUASHED.values())
    call_command("migrate", check_unapplied=True, skip_checks=False, verbosity=0)
    prepare.migrate()
    squashed = MigrationRecorder.Migration.objects.filter(name__in=SQUASHED.values())
    assert {migration.app for migration in squashed} == set(LAST_REPLACED)


# Indexes that are built while others write cannot be built in a transaction.
@pytest.mark.django_db(transaction=True)
def test_a_database_without_the_migrations_of_an_app_gets_its_tables() -> None:
    call_command("migrate", "backfills_app", "zero", verbosity=0)
    assert "backfills_app_backfill" not in connection.introspection.table_names()
    prepare.migrate()
    assert "backfills_app_backfill" in connection.introspection.table_names()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["backfill_partition_by_state", "backfill_partition_by_reason"])
def test_an_index_whose_build_was_interrupted_is_built_again(name: str) -> None:
    call_command("migrate", "backfills_app", "0002", verbosity=0)
    with connection.cursor() as cursor:
        # A concurrent build that ends early leaves an index of the name.
        cursor.execute(f"CREATE INDEX {name} ON backfills_app_backfillpartition (state)")
        prepare.migrate()
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [name])
        ((definition,),) = cursor.fetchall()
    assert "backfill_asset_id" in definition
