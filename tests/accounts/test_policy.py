"""The policy: the roles and grants that allow an action."""

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from accounts_app.models import Grant, User
from accounts_app.policy import (
    Action,
    Role,
    may,
    may_for_assets,
    reach,
    require,
    require_for_assets,
)
from tests import factories

WRITES = set(Action) - {Action.VIEW}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (None, set()),
        (Role.VIEWER, set()),
        (
            Role.OPERATOR,
            {Action.MATERIALIZE, Action.REPORT, Action.BACKFILL, Action.CANCEL},
        ),
        (Role.EDITOR, WRITES - {Action.ADMINISTER}),
        (Role.ADMIN, WRITES),
    ],
)
def test_a_role_grants_its_actions(role: Role | None, granted: set[Action]) -> None:
    user = factories.person("somebody", role)
    assert {action for action in Action if may(user, action)} == granted | {Action.VIEW}


@pytest.mark.django_db
def test_a_superuser_may_do_everything_and_an_inactive_one_nothing() -> None:
    user = factories.person("ada", is_superuser=True)
    assert all(may(user, action) for action in Action)
    user.is_active = False
    assert not any(may(user, action) for action in Action)


def test_nobody_may_do_anything_without_sign_in() -> None:
    assert not any(may(AnonymousUser(), action) for action in Action)


@pytest.mark.django_db
def test_a_refusal_names_who_what_and_the_role_needed() -> None:
    with pytest.raises(PermissionDenied, match=r"vera may not backfill: this needs .* operator"):
        require(factories.person("vera", Role.VIEWER), Action.BACKFILL)


@pytest.mark.django_db
def test_the_groups_of_roles_exist_from_the_start() -> None:
    assert {role.value for role in Role} <= set(Group.objects.values_list("name", flat=True))
    assert not User.objects.exists()


@dataclass(frozen=True)
class Named:
    """An asset, as the policy sees it: by its name."""

    name: str
    group: str = ""


FLIGHTS, WEATHER = Named("raw_flights", "flights"), Named("weather")
DELAYS = Named("delays", "flights")
EACH = (FLIGHTS, WEATHER, DELAYS)
BY_GRANT = {Action.BACKFILL, Action.CANCEL}
# What is granted, and the assets of EACH that it reaches.
GRANTS = {
    "nothing": ({}, set()),
    "an asset": ({"asset": "weather"}, {"weather"}),
    "a group of assets": ({"asset_group": "flights"}, {"raw_flights", "delays"}),
    "an asset of no such name": ({"asset": "raw_flight"}, set()),
    "a group named as an asset": ({"asset": "flights"}, set()),
}


@pytest.mark.django_db
@pytest.mark.parametrize("granted", GRANTS)
@pytest.mark.parametrize("to", ["person", "people"])
@pytest.mark.parametrize("role", [None, *Role])
def test_the_whole_matrix_of_roles_grants_assets_and_actions(
    role: Role | None, to: str, granted: str
) -> None:
    user = factories.person("somebody", role)
    on, reached = GRANTS[granted]
    if on:
        night_shift = Group.objects.create(name="night shift")
        user.groups.add(night_shift)
        Grant.objects.create(
            **on, **({"person": user} if to == "person" else {"people": night_shift})
        )
    for action in Action:
        by_role = may(user, action)
        for asset in EACH:
            expected = by_role or (action in BY_GRANT and asset.name in reached)
            assert may_for_assets(user, action, [asset]) is expected, (action, asset)


@pytest.mark.django_db
def test_a_grant_is_its_holder_s_alone_and_ends_with_the_account() -> None:
    vera, victor = factories.person("vera"), factories.person("victor")
    Grant.objects.create(person=vera, asset="weather")
    assert may_for_assets(vera, Action.BACKFILL, [WEATHER])
    assert not may_for_assets(victor, Action.BACKFILL, [WEATHER])
    assert not may(vera, Action.BACKFILL)
    vera.is_active = False
    assert not may_for_assets(vera, Action.BACKFILL, [WEATHER])
    assert not may_for_assets(AnonymousUser(), Action.BACKFILL, [WEATHER])


@pytest.mark.django_db
def test_every_asset_is_asked_about_and_each_that_is_refused_is_named() -> None:
    vera = factories.person("vera", Role.VIEWER)
    Grant.objects.create(person=vera, asset="weather")
    assert not may_for_assets(vera, Action.BACKFILL, EACH)
    require_for_assets(vera, Action.BACKFILL, [WEATHER])
    with pytest.raises(PermissionDenied) as refused:
        require_for_assets(vera, Action.BACKFILL, EACH)
    assert str(refused.value) == (
        "vera may not backfill delays, raw_flights: this needs the role operator, or the permission"
        " backfill on each asset or its group."
    )


@pytest.mark.django_db
def test_a_refusal_of_hundreds_is_still_a_sentence() -> None:
    many = [Named(f"asset_{number:03}") for number in range(300)]
    with pytest.raises(PermissionDenied, match=r"asset_009 and 290 more: this needs"):
        require_for_assets(factories.person("vera", Role.VIEWER), Action.BACKFILL, many)


@pytest.mark.django_db
def test_an_action_that_nobody_grants_is_told_by_role_alone() -> None:
    with pytest.raises(
        PermissionDenied, match=r"may not pause weather: this needs the role editor\."
    ):
        require_for_assets(factories.person("vera", Role.VIEWER), Action.PAUSE, [WEATHER])


@pytest.mark.django_db
def test_the_reach_over_thousands_of_assets_is_read_in_two_statements(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    vera = factories.person("vera", Role.VIEWER)
    Grant.objects.create(person=vera, asset_group="flights")
    with django_assert_num_queries(2):
        within = reach(vera, Action.BACKFILL)
    with django_assert_num_queries(0):
        covered = [within.covers(Named(str(number), "flights")) for number in range(2000)]
    assert all(covered)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"asset": "weather"}, "grant_to_one"),
        ({"asset": "weather", "person": True, "people": True}, "grant_to_one"),
        ({"person": True}, "grant_on_one"),
        ({"person": True, "asset": "weather", "asset_group": "flights"}, "grant_on_one"),
        ({"person": True, "asset": "weather", "permission": "fly"}, "grant_permission_known"),
    ],
)
def test_the_database_refuses_a_grant_that_says_nothing_or_two_things(
    fields: dict[str, object], constraint: str
) -> None:
    rows = {"person": factories.person("vera"), "people": Group.objects.get(name="viewer")}
    columns = {name: rows.get(name, value) for name, value in fields.items()}
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Grant.objects.create(**columns)
