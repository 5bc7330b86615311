"""The database refuses to change, delete or empty the audit trail.

The triggers allow one change: the database sets the reference to a deleted account to null. The
owner of the table can disable the triggers, to delete old entries.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# The constraint keeps its name, which Django has made of a digest.
ACTION = """
DO $$
DECLARE reference name;
BEGIN
    SELECT conname INTO STRICT reference FROM pg_constraint
        WHERE conrelid = 'accounts_app_auditentry'::regclass AND contype = 'f';
    EXECUTE format('ALTER TABLE accounts_app_auditentry DROP CONSTRAINT %I', reference);
    EXECUTE format(
        'ALTER TABLE accounts_app_auditentry ADD CONSTRAINT %I FOREIGN KEY (actor_id)'
        ' REFERENCES accounts_app_user (id) {action} DEFERRABLE INITIALLY DEFERRED', reference
    );
END $$;
"""
SET_NULL = ACTION.replace("{action}", "ON DELETE SET NULL")
NO_ACTION = ACTION.replace("{action}", "")

CREATE = """
CREATE FUNCTION accounts_app_keep_audit_trail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE without_actor accounts_app_auditentry;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        without_actor := OLD;
        without_actor.actor_id := NULL;
        IF NEW IS NOT DISTINCT FROM without_actor
            AND NOT EXISTS (SELECT FROM accounts_app_user WHERE id = OLD.actor_id)
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'The audit trail stays as it is: % is refused.', TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_entry_stays BEFORE UPDATE OR DELETE ON accounts_app_auditentry
    FOR EACH ROW EXECUTE FUNCTION accounts_app_keep_audit_trail();
CREATE TRIGGER audit_trail_stays BEFORE TRUNCATE ON accounts_app_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_app_keep_audit_trail();
"""
DROP = """
DROP TRIGGER audit_trail_stays ON accounts_app_auditentry;
DROP TRIGGER audit_entry_stays ON accounts_app_auditentry;
DROP FUNCTION accounts_app_keep_audit_trail();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts_app", "0003_sign_in_generation")]
    operations = [
        migrations.AlterField(
            model_name="auditentry",
            name="actor",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="audit_entries",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(SET_NULL, NO_ACTION),
        migrations.RunSQL(CREATE, DROP),
    ]
