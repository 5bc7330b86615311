"""What the page of the own account says of the rights of a person."""

import pytest
from django.test import Client

from accounts_app.models import Grant
from accounts_app.policy import Role
from tests.factories import person
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "granted", "told"),
    [
        (None, [], "<dd>None (read-only)</dd>"),
        (None, [{"asset": "orders"}, {"asset_group": "sales"}], "<dd>None</dd>"),
        (Role.OPERATOR, [{"asset": "orders"}], "<dd>operator</dd>"),
    ],
    ids=["nothing", "grants", "role"],
)
def test_roles_and_grants_are_told(
    role: Role | None, granted: list[dict[str, str]], told: str
) -> None:
    ada = person("ada", role)
    for names in granted:
        Grant.objects.create(person=ada, **names)
    browser = Client()
    browser.force_login(ada)
    page = compact(browser.get("/account/").content.decode())
    assert f"<dt>Roles</dt>{told}" in page
    may_backfill = "<dt>May backfill</dt>"
    assert (may_backfill in page) is (role is None and bool(granted))
    if may_backfill in page:
        assert "orders, group sales</dd>" in page
