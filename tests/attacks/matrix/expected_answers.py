"""The verdict of the rules on one request: the right answers, and the right to change anything."""

from __future__ import annotations

from dataclasses import dataclass

from tests.attacks.matrix.people_and_records import LENT
from tests.attacks.matrix.rules import OUTSIDE, READERS, SITE, Rule, Write

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Expected:
    """The statuses that are right, where a redirect leads to, and whether something changes."""

    statuses: frozenset[int]
    leads_to: str = ""
    changes: bool = False


def expected(route: str, rule: Rule, method: str, role: str, place: str) -> Expected:
    """Return the right answers to a request of a person in a role, about things of a place."""
    if rule.open_to_all:
        return Expected(rule.open_to_all)
    write = rule.writes.get(method)
    is_for_strangers = rule.for_strangers or (write is not None and bool(write.who & OUTSIDE))
    if not is_for_strangers and not _comes_in(route, role):
        return _turned_away(route, rule)
    if write is not None:
        return _of_write(write, role, place)
    if method in READING and rule.reads is not None:
        return Expected(rule.answers if role in rule.reads else frozenset({403}))
    if method == "OPTIONS":
        return Expected(frozenset({200, 405}))
    return Expected(frozenset({405}))


def may_write(write: Write, role: str, place: str) -> bool:
    """Return whether a person in the role may send the request about things of the place."""
    return role in write.who or (write.by_grant and role == "granted" and place == LENT)


def _of_write(write: Write, role: str, place: str) -> Expected:
    if not may_write(write, role, place):
        return Expected(frozenset({write.refusal}))
    return Expected(write.answers, changes=write.changes and role in write.changed_by)


def _comes_in(route: str, role: str) -> bool:
    return role in (SITE if route.startswith("admin/") else READERS)


def _turned_away(route: str, rule: Rule) -> Expected:
    if route.startswith("api/v1/"):
        return Expected(frozenset({401}))
    sign_in = "/admin/login/" if route.startswith("admin/") else "/sign-in/"
    return Expected(frozenset({302}), leads_to=rule.turned_to or sign_in)
