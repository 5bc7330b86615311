"""SQL by which the database refuses to change, delete or empty the audit trail.

The triggers allow one change: the reference to an account is set to null, and nothing else. The
owner of the table can disable the triggers, to delete old entries.
"""

# Django has no action of the database for a reference until 6.1. The constraint keeps its name,
# which Django has made of a digest.
SET_NULL_WITH_ACCOUNT = """
DO $$
DECLARE reference name;
BEGIN
    SELECT conname INTO STRICT reference FROM pg_constraint
        WHERE conrelid = 'accounts_app_auditentry'::regclass AND contype = 'f';
    EXECUTE format('ALTER TABLE accounts_app_auditentry DROP CONSTRAINT %I', reference);
    EXECUTE format(
        'ALTER TABLE accounts_app_auditentry ADD CONSTRAINT %I FOREIGN KEY (actor_id)'
        ' REFERENCES accounts_app_user (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED',
        reference
    );
END $$;
"""

CREATE_TRIGGERS = """
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
DROP_TRIGGERS = """
DROP TRIGGER audit_trail_stays ON accounts_app_auditentry;
DROP TRIGGER audit_entry_stays ON accounts_app_auditentry;
DROP FUNCTION accounts_app_keep_audit_trail();
"""
