"""The list of pages, which axe and the pictures share, has every page of the URL conf."""

from collections import defaultdict

import pytest
from django.urls import resolve

from tests.attacks.matrix.rules import FAMILIES
from tests.pages.page_list import (
    ADMIN,
    LEFT_OUT,
    PAGES,
    SIGNED_OUT,
    names_in,
    reason_left_out,
)

HOME = "tests/pages/page_list.py"
LISTED = {**PAGES, **SIGNED_OUT, **ADMIN}


def routes_of_pages() -> set[str]:
    """Return the routes that answer GET, without the API; the matrix has a rule for each."""
    rules = [named for family in FAMILIES.values() for named in family.items()]
    return {route for route, rule in rules if rule.reads and not route.startswith("api/v1/")}


def test_every_page_is_listed_or_left_out_with_a_reason() -> None:
    unknown = [r for r in routes_of_pages() - LISTED.keys() if not reason_left_out(r)]
    assert not unknown, (
        f"Add an address of each to {HOME}, or leave it out with a reason: {unknown}"
    )


def test_the_list_has_no_page_that_is_gone() -> None:
    assert LISTED.keys() | LEFT_OUT.keys() <= routes_of_pages()


@pytest.mark.parametrize("route", LISTED)
def test_an_address_leads_to_the_page_that_it_is_listed_for(route: str) -> None:
    for template in LISTED[route]:
        path = template.format_map(defaultdict(lambda: "7")).partition("?")[0]
        assert resolve(path).route == route


def test_an_address_says_which_things_it_names() -> None:
    assert names_in("/assets/{asset}/partitions/{failed_key}/") == {"asset", "failed_key"}
