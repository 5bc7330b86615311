"""Every address x every method x every role: the answer, and no other change.

The addresses come from the URL conf, the right answers from the rules beside this test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.attacks.matrix.addresses import all_routes
from tests.attacks.matrix.expected_answers import METHODS, Expected, expected, may_write
from tests.attacks.matrix.people_and_records import KEPT, LENT, Person, World, make_world
from tests.attacks.matrix.requests import SESSION, TOKEN, address_of, digest, send, written_rows
from tests.attacks.matrix.rules import EVERYBODY, FAMILIES, OUTSIDE, SITE, Rule

HOME = "tests/attacks/matrix/rules.py"
ALL = {route: rule for rules in FAMILIES.values() for route, rule in rules.items()}
# Bodies of which a form, or a serializer, says what is wrong.
_BAD_VALUES = ("params", "metadata", "rows", "strategy", "code", "max_active_runs", "selection")
BAD_BODIES: tuple[dict[str, Any], ...] = ({"nonsense": 1}, dict.fromkeys(_BAD_VALUES, "{"))
CAST = [(role, KEPT) for role in sorted(EVERYBODY)]


@pytest.fixture
def site(tokens_asked_for_anew: None) -> World:
    """Make the world, with no recent request for tokens: requests are limited by address."""
    return make_world()


def test_every_address_has_a_rule() -> None:
    ruled_routes = Counter(route for rules in FAMILIES.values() for route in rules)
    missing = [route for route in all_routes() if route not in ruled_routes]
    assert not missing, (
        f"No rule says who may do what at {missing}. Add each to the family in {HOME} where it"
        " belongs: with `readable` if whoever is signed in may read it, with `written` or `asked`"
        " and a body that changes something if it writes; a new model of the admin to MODELS."
    )
    stale = sorted(set(ruled_routes) - set(all_routes()))
    assert not stale, f"There is nothing at {stale} any more: take it out of {HOME}."
    assert max(ruled_routes.values()) == 1, (
        f"An address of two families: {ruled_routes.most_common(3)}"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_answered_as_the_rules_say(site: World, family: str) -> None:
    before = digest()
    wrong = [
        line
        for route, rule in FAMILIES[family].items()
        for role, place in cast_of(rule)
        for way in ways(route, role)
        for line in faults_of(site, route, rule, role, place, way, before)
    ]
    assert digest() == before
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong[:60])


def test_the_policy_is_asked_before_the_body_is_read(site: World) -> None:
    wrong = []
    for route, rule in ALL.items():
        address = address_of(route, rule, site.things[KEPT])
        for method, write in rule.writes.items():
            for role in sorted(EVERYBODY - OUTSIDE):
                is_unknown = role == "granted" and write.asset_in_body
                if is_unknown or may_write(write, role, KEPT):
                    continue
                if route.startswith("admin/") and role not in SITE:
                    continue
                for body in BAD_BODIES:
                    answer = send(site.people[role], SESSION, method, address, body)
                    if answer.status_code != write.refusal:
                        wrong.append(told(answer, role, method, address))
    assert not wrong, "\n".join(wrong)


def test_a_foreign_page_cannot_write_with_a_session(site: World) -> None:
    """Without the CSRF token of the site; tokens of programs are in no browser."""
    person = site.people["superuser"]
    browser = Client(raise_request_exception=False, enforce_csrf_checks=True)
    browser.cookies = person.browser.cookies
    wrong, before = [], digest()
    for route, rule in ALL.items():
        address = address_of(route, rule, site.things[KEPT])
        for method, write in rule.writes.items():
            if write.who & OUTSIDE:
                continue
            body = write.body(site.things[KEPT])
            answer = send(Person(browser, browser, ""), SESSION, method, address, body)
            if answer.status_code != 403:
                wrong.append(told(answer, "superuser", method, address))
    assert not wrong, "\n".join(wrong)
    assert digest() == before


def cast_of(rule: Rule) -> list[tuple[str, str]]:
    """Return who comes, and about whose things; `granted` comes for the asset that is lent, too."""
    is_lent = any(write.by_grant for write in rule.writes.values())
    return [*CAST, ("granted", LENT)] if is_lent else CAST


def methods_sent(rule: Rule, route: str, way: str) -> list[str]:
    """Return all methods; with a token only the allowed methods, since other methods do not depend
    on the sign-in.
    """
    if way == SESSION or not route.startswith("api/v1/"):
        return list(METHODS)
    return ["GET", *rule.writes]


def ways(route: str, role: str) -> tuple[str, ...]:
    """Return the ways of a person in the role to the address: pages take no tokens."""
    if route.startswith("api/v1/"):
        return (SESSION, TOKEN)
    return (SESSION, TOKEN) if role == "superuser" else (SESSION,)


def faults_of(
    world: World,
    route: str,
    rule: Rule,
    role: str,
    place: str,
    way: str,
    before: Mapping[str, tuple[int, str]],
) -> Iterator[str]:
    """Send every method to the address, and list the answers that the rules do not allow.

    `before` is the digest of the world. The world is as before afterwards.
    """
    things, person = world.things[place], world.people[role]
    # A token opens the API alone.
    counts_as = role if way == SESSION or route.startswith("api/v1/") else "anonymous"
    address = address_of(route, rule, things)
    changing = []
    with transaction.atomic():
        written_before = written_rows()
        for method in methods_sent(rule, route, way):
            right = expected(route, rule, method, counts_as, place)
            if right.changes:
                changing.append((method, right))
                continue
            write = rule.writes.get(method)
            answer = send(person, way, method, address, write.body(things) if write else None)
            if not is_right(answer, right):
                yield told(answer, f"{role} ({way}, {place})", method, address, right)
        # Hashes of all rows take most of the time, and rarely is there a row that was written.
        if written_rows() != written_before and (after := digest()) != before:
            tables = sorted(name for name in after if after[name] != before[name])
            yield f"{role} ({way}, {place}) has changed {tables} at {address}"
        transaction.set_rollback(True)
    for method, right in changing:
        with transaction.atomic():
            answer = send(person, way, method, address, rule.writes[method].body(things))
            # A session has no token that could be given back.
            has_no_effect = answer.status_code == 409 and 409 in right.statuses
            if not is_right(answer, right):
                yield told(answer, f"{role} ({way}, {place})", method, address, right)
            elif not has_no_effect and digest() == before:
                yield f"{method} {address} by {role} ({way}) is to change something, and does not"
            transaction.set_rollback(True)


def is_right(answer: Any, right: Expected) -> bool:
    """Return whether the answer to a request follows the rules."""
    leads_to = answer.headers.get("Location", "")
    return answer.status_code in right.statuses and leads_to.startswith(right.leads_to)


def told(answer: Any, role: str, method: str, address: str, right: Expected | None = None) -> str:
    """Say in a line how a request was answered."""
    content = b"" if answer.streaming else answer.content
    wanted = f", not {sorted(right.statuses)} {right.leads_to}" if right else ""
    text = content[:150].decode(errors="replace") if answer.status_code != 200 else ""
    location = answer.headers.get("Location", "")
    return f"{method} {address} by {role}: {answer.status_code} {location}{wanted} {text!r}"
