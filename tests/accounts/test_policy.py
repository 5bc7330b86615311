"""Who may do what."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied

from accounts_app.models import User
from accounts_app.policy import Action, Role, may, require
from tests import cast

WRITES = set(Action) - {Action.VIEW}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (None, set()),
        (Role.VIEWER, set()),
        (Role.OPERATOR, {Action.MATERIALIZE, Action.BACKFILL, Action.CANCEL}),
        (Role.EDITOR, WRITES - {Action.ADMINISTER}),
        (Role.ADMIN, WRITES),
    ],
)
def test_a_role_grants_its_actions(role: Role | None, granted: set[Action]) -> None:
    user = cast.person("somebody", role)
    assert {action for action in Action if may(user, action)} == granted | {Action.VIEW}


@pytest.mark.django_db
def test_a_superuser_may_do_everything_and_an_inactive_one_nothing() -> None:
    user = cast.person("ada", is_superuser=True)
    assert all(may(user, action) for action in Action)
    user.is_active = False
    assert not any(may(user, action) for action in Action)


def test_nobody_may_do_anything_without_sign_in() -> None:
    assert not any(may(AnonymousUser(), action) for action in Action)


@pytest.mark.django_db
def test_a_refusal_names_who_what_and_the_role_needed() -> None:
    with pytest.raises(PermissionDenied, match=r"vera may not backfill: this needs .* operator"):
        require(cast.person("vera", Role.VIEWER), Action.BACKFILL)


@pytest.mark.django_db
def test_the_groups_of_roles_exist_from_the_start() -> None:
    assert {role.value for role in Role} <= set(Group.objects.values_list("name", flat=True))
    assert not User.objects.exists()
