"""Empty the test database after tests that commit, faster than Django's flush.

Django truncates all tables, and writes content types and permissions anew: half a second a test.
"""

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from accounts_app.apps import create_roles

# Written by migrations, and the same after each test.
_KEPT = {"django_content_type", "auth_permission"}
# The triggers of this table let nobody delete rows; the owner of the table can disable them.
_AUDIT_TRAIL = "accounts_app_auditentry"


def empty_database() -> None:
    """Delete all rows that tests have written; wait for open transactions of other connections."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {_AUDIT_TRAIL} DISABLE TRIGGER USER")
        with transaction.atomic():
            _delete_rows(cursor)
            create_roles(using=connection.alias)
        cursor.execute(f"ALTER TABLE {_AUDIT_TRAIL} ENABLE TRIGGER USER")


def _delete_rows(cursor: CursorWrapper) -> None:
    """Delete in any order: foreign keys are checked at the end of the transaction."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [connection.ops.quote_name(name) for name in names if name not in _KEPT]
    cursor.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
    filled = (f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
    cursor.execute(" UNION ALL ".join(filled))
    for (table,) in cursor.fetchall():
        cursor.execute(f"DELETE FROM {table}")
