"""Pages that ask again for the states of the whole graph share the counts of some seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from assets_app.queries import shared_graph_states
from tests.factories import asset

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/asset-graph/states/"


@pytest.fixture(autouse=True)
def _nothing_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin and end without shared numbers, which are shared for longer than a test may take."""
    monkeypatch.setattr(shared_graph_states, "SHARED_SECONDS", 600)
    monkeypatch.setattr(shared_graph_states, "_KEPT_SECONDS", 3600)
    names = [key("graph-states"), key("graph-states-counted")]
    cache.delete_many(names)
    yield
    cache.delete_many(names)


def key(name: str) -> str:
    """Return the key of the cache: another installation has another database."""
    return f"{name}-{connection.settings_dict['NAME']}"


def ask(api: APIClient, *, age: str = "") -> tuple[list[str], bool]:
    """Return the names of the counted assets, and whether the answer was counted anew."""
    headers: dict[str, Any] = {"Cache-Control": age} if age else {}
    with CaptureQueriesContext(connection) as statements:
        answer = api.get(ADDRESS, headers=headers)
    assert answer.status_code == 200
    is_new = any("assets_app_partitioncount" in query["sql"] for query in statements)
    return list(answer.json()["assets"]), is_new


def test_polls_share_a_count_and_a_first_look_counts_anew(api: APIClient) -> None:
    asset("first")
    assert ask(api, age="max-age=5") == (["first"], True)
    asset("second")
    assert ask(api, age="max-age=5") == (["first"], False)
    assert ask(api, age="max-age=60") == (["first"], False)
    # Programs, and pages that have just been opened.
    for age in ("", "max-age=4", "no-cache", "max-age=x"):
        assert ask(api, age=age) == (["first", "second"], True)
    # The new numbers are shared.
    assert ask(api, age="max-age=5") == (["first", "second"], False)


def test_one_poll_counts_when_the_time_is_over_and_the_others_get_the_numbers_before(
    api: APIClient,
) -> None:
    asset("first")
    ask(api, age="max-age=5")
    asset("second")
    cache.delete(key("graph-states-counted"))  # as after five seconds
    assert cache.add(key("graph-states-counted"), 1, 600)  # another process counts
    assert ask(api, age="max-age=5") == (["first"], False)
    cache.delete(key("graph-states-counted"))
    assert ask(api, age="max-age=5") == (["first", "second"], True)


def test_a_part_of_the_graph_is_never_shared(api: APIClient) -> None:
    asset("first")
    ask(api, age="max-age=5")
    answer = api.get(f"{ADDRESS}?asset=first", headers={"Cache-Control": "max-age=5"})
    assert list(answer.json()["assets"]) == ["first"]
    asset("second")
    answer = api.get(f"{ADDRESS}?asset=second", headers={"Cache-Control": "max-age=5"})
    assert list(answer.json()["assets"]) == ["second"]
