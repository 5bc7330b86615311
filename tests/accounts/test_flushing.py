"""The removal of rows between tests that commit, of the audit trail too."""

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection

from accounts_app.models import AuditEntry, User
from assets_app.models import Asset
from tests import flushing
from tests.factories import DAILY_2013, asset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("largest_bytes", [flushing.LARGEST_BYTES, 0])
@pytest.mark.parametrize("has_entry", [True, False])
def test_all_rows_are_removed_and_the_audit_trail_stays_guarded(
    monkeypatch: pytest.MonkeyPatch, has_entry: bool, largest_bytes: int
) -> None:
    monkeypatch.setattr(flushing, "LARGEST_BYTES", largest_bytes)
    person = User.objects.create_user("flush")
    asset("flights", DAILY_2013)
    if has_entry:
        AuditEntry.objects.create(action="test", actor=person)
    call_command("flush", verbosity=0, interactive=False)
    assert not any(model.objects.exists() for model in (User, Asset, AuditEntry))
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute("TRUNCATE accounts_app_auditentry")
