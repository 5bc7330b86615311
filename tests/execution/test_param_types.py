"""A given param has the type of its declared default, or is refused in a sentence."""

from typing import Any

import pytest

from accounts_app.models import User
from assets_app.execution.request.param_types import with_declared_types
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Run
from backfills_app.models import Backfill
from slicewise_server.web.request_errors import InvalidRequest
from tests.backfills.driven_backfills import refusal_of, start
from tests.execution.conftest import alice, sent
from tests.factories import DAILY_2013, asset

__all__ = ["alice", "sent"]

SENTENCE = "limit takes a whole number, as its declared default is; the given value is a text."


@pytest.mark.parametrize(
    ("value", "default", "typed"),
    [
        (3, 10, 3),
        (3.0, 10, 3),
        (1, 1.0, 1.0),
        (0.1, 1.0, 0.1),
        ("a", "", "a"),
        (False, True, False),
        ([1], [], [1]),
        ({"a": 1}, {}, {"a": 1}),
        ("anything", None, "anything"),
    ],
)
def test_a_fit_value_has_the_type_of_the_default(value: Any, default: Any, typed: Any) -> None:
    given = with_declared_types({"p": value}, {"p": default})["p"]
    assert (given, type(given)) == (typed, type(typed))


@pytest.mark.parametrize(
    ("value", "default"),
    [
        ("3", 10), (0.5, 10), (True, 10), (None, 10), ("1", 1.0), (True, 1.0), (10**400, 1.0),
        (1, True), ("true", True), (3, "three"), ("a", ["a"]), ({}, []), ([], {}),
    ],
)  # fmt: skip
def test_another_value_is_refused(value: Any, default: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^p takes .*, as its declared default is; the given"):
        with_declared_types({"p": value}, {"p": default})


def test_all_wrong_values_are_named_and_none_is_shown() -> None:
    declared = {"limit": 10, "password": "hunter2", "share": 0.5}
    with pytest.raises(InvalidRequest) as refused:
        with_declared_types({"limit": "secret", "password": 4711, "share": 1}, declared)
    assert refused.value.errors == {
        "params": [
            SENTENCE,
            "password takes a text, as its declared default is; the given value is a whole number.",
        ]
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("sent")
def test_requests_take_and_refuse_params_by_their_type(alice: User) -> None:
    raw_flights = asset("raw_flights", DAILY_2013, params={"limit": 10, "share": 1.0})
    day = "2013-01-01"
    with pytest.raises(InvalidRequest) as refused:
        materialize(
            MaterializeRequest(asset=raw_flights, selection=day, params={"limit": "3"}), user=alice
        )
    assert refused.value.errors == {"params": [SENTENCE]}
    assert not Run.objects.exists()
    fields = {"asset": "raw_flights", "start": day, "end": day, "params": {"limit": "3"}}
    assert refusal_of(alice, **fields) == {"params": [SENTENCE]}

    given = {"limit": 3, "share": 2}
    materialize(MaterializeRequest(asset=raw_flights, selection=day, params=given), user=alice)
    start(alice, params=given)
    for params in (Run.objects.get().params, Backfill.objects.get().assets.get().params):
        assert params == {"limit": 3, "share": 2.0}
        assert type(params["share"]) is float


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("password", "***", "hunter2"), ("password", "***", ""), ("token", "***", None),
        ("uri", "db://me:***@host", "db://me:hunter2@host"), ("uri", "db://me:***@host", ""),
        ("login", "***", "ghp_0123456789012345678901"), ("options", {"token": "***"}, {}),
        ("options", [{"secret": {"inner": "***"}}], []),
        ("repo", "https://***@github.com/y", f"https://ghp_{'A' * 24}@github.com/x"),
        ("aws", {"user": "***", "n": 2}, {"user": "AKIAABCDEFGHIJKLMNOP", "n": 1}),
        ("keys", ["a", "***"], ["b", "AKIAABCDEFGHIJKLMNOP"]),
        # One of two secrets is given, the other is still masked.
        ("uri", "db://u:new@h1/a db://u:***@h2/b", "db://u:pw1@h1/a db://u:pw2@h2/b"),
        ("uri", "jdbc:db://h/x?password=new&sslpassword=***", "jdbc:db://h/x"),
        ("login", "password=new token=***", ""), ("login", "password=ab*** token=***", ""),
    ],
)  # fmt: skip
def test_a_mask_is_refused(name: str, value: Any, default: Any) -> None:
    with pytest.raises(InvalidRequest, match=rf"^{name} has \*\*\* in place of a secret"):
        with_declared_types({name: value}, {name: default})


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("password", "***", "***"), ("separator", "***", ""),
        ("note", "see *** at db://host/x", ""),
        # Secrets with such characters.
        ("uri", "db://me:ab***cd@host", ""), ("note", "password=real -- ***", ""),
        ("uri", "db://me:real@host/x?glob=***", "db://me:other@host/x"),
        ("uri", "db://me:a:***:b@host", ""),
    ],
)  # fmt: skip
def test_stars_that_mask_nothing_are_values(name: str, value: Any, default: Any) -> None:
    assert with_declared_types({name: value}, {name: default}) == {name: value}
