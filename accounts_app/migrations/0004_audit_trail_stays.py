"""The database refuses to change, delete or empty the audit trail.

The triggers allow one change: the reference to an account is set to null, and nothing else. The
owner of the table can disable the triggers, to delete old entries.

Each statement here is short, also where the trail is long: no statement reads the trail. Locks on
accounts and trail that are not had within seconds fail the migration, which is then run again,
rather than keep everybody waiting behind it. 0006 validates what is there.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# A statement that waits for its lock makes all later readers of the table wait.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

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
        ' REFERENCES accounts_app_user (id) {action} DEFERRABLE INITIALLY DEFERRED NOT VALID',
        reference
    );
END $$;
"""
SET_NULL = ACTION.replace("{action}", "ON DELETE SET NULL")
NO_ACTION = ACTION.replace("{action}", "")

# A web server of the previous version deletes an account by setting the reference to null first,
# while the account is still there. It may do so while an upgrade is under way, and it takes nothing
# from the entry: the name of the account stays in `actor_name`.
CREATE = """
CREATE FUNCTION accounts_app_keep_audit_trail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE without_actor accounts_app_auditentry;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        without_actor := OLD;
        without_actor.actor_id := NULL;
        IF NEW IS NOT DISTINCT FROM without_actor THEN
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
        migrations.RunSQL(LOCK_TIMEOUT, migrations.RunSQL.noop),
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
        migrations.RunSQL(CREATE, f"{LOCK_TIMEOUT};{DROP}"),
    ]
