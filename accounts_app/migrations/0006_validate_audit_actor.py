"""Check the reference of the audit trail's entries to accounts, beside whoever reads and writes.

To validate a constraint reads the whole trail, and lets others write to both tables meanwhile. In
the transaction that adds the constraint it would keep them waiting, by the locks held there.
"""

from django.db import migrations

VALIDATE = """
DO $$
DECLARE reference name;
BEGIN
    SELECT conname INTO STRICT reference FROM pg_constraint
        WHERE conrelid = 'accounts_app_auditentry'::regclass AND contype = 'f';
    EXECUTE format('ALTER TABLE accounts_app_auditentry VALIDATE CONSTRAINT %I', reference);
END $$;
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts_app", "0005_no_form_data")]
    operations = [migrations.RunSQL(VALIDATE, migrations.RunSQL.noop)]
