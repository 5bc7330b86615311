"""Requests of the matrix: addresses filled in, bodies, and the changes of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import urlencode

from django.db import connection

from tests.attacks.matrix.people_and_records import DAY, Person, Things
from tests.attacks.matrix.rules import Rule

SESSION, TOKEN = "session", "token"
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_URL_ARGUMENT = re.compile(r"<(?:\w+:)?(\w+)>|\^?\(\?P<(\w+)>[^)]*\)")
_NOT_TOLD = ("django_migrations",)


def address_of(route: str, rule: Rule, things: Things) -> str:
    """Return an address of the route, about the thing that the route's rule names."""
    if route == r"api/^[\s\S]*\Z":
        return "/api/v1/nothing-is-here/"
    filled = _URL_ARGUMENT.sub(lambda match: _filling(match[1] or match[2], rule, things), route)
    return f"/{filled.removesuffix('$')}{rule.query.format_map(things)}"


def _filling(name: str, rule: Rule, things: Things) -> str:
    constant = {"key": DAY, "content_type_id": things["content_type"], "url": "no-such-page/"}
    return str(
        things[rule.of] if name not in constant or rule.of == "own_token" else constant[name]
    )


def send(
    person: Person, way: str, method: str, address: str, body: Mapping[str, Any] | None = None
) -> Any:
    """Send the request by the person's browser, or with the token of the person's program."""
    client = person.browser if way == SESSION else person.program
    headers = {} if way == SESSION else {"authorization": f"Bearer {person.token}"}
    content, kind = _encoded(address, body)
    # The session as it was: a sign-out of this request does not sign the next one out.
    cookies = deepcopy(client.cookies)
    answer = client.generic(method, address, content, kind, headers=headers)
    client.cookies = cookies
    return answer


def _encoded(address: str, body: Mapping[str, Any] | None) -> tuple[bytes, str]:
    if body is None:
        return b"", _JSON
    if address.startswith("/api/"):
        return json.dumps(body).encode(), _JSON
    return urlencode(body, doseq=True).encode(), _FORM


def written_rows() -> int:
    """Return how many rows this transaction has written so far, rows of other tables included that
    it has taken back since: PostgreSQL's own count.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_stat_get_xact_tuples_inserted(oid)"
            " + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid)), 0)"
            " FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        count: int = cursor.fetchone()[0]
    return count


def digest() -> dict[str, tuple[int, str]]:
    """Return for each table the number of its rows, and a hash of all rows."""
    tables = [name for name in connection.introspection.table_names() if name not in _NOT_TOLD]
    selects = (
        f"SELECT '{name}', count(*), coalesce(sum(hashtextextended(row::text, 0)), 0)::text"
        f' FROM "{name}" AS row'
        for name in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(selects))
        return {name: (count, content) for name, count, content in cursor.fetchall()}
