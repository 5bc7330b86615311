"""A forged cursor causes no error of the server."""

import base64
import json
from datetime import UTC, datetime

import pytest
from rest_framework.test import APIClient

from assets_app.models import Asset
from slicewise_server.web.api.pages import encode_cursor
from tests import factories

LISTS = (
    "assets/", "runs/", "backfills/", "gateways/", "assets/raw_flights/partitions/",
    "assets/raw_flights/partitions/?state=failed", "assets/raw_flights/ticks/",
    "assets/followed/ticks/", "assets/weather/partitions/", "assets/carriers/partitions/",
)  # fmt: skip
POSITIONS: tuple[object, ...] = (
    "\ud800", "\0", "a\0b", "x" * 100_000, "", "raw_flights", "2013-01-01", True, False, -1, 0, 1,
    2**31, 2**63 - 1, 2**63, 2**64, 10**30, 1.5, 1e300, [], [1], [1, 2], [2**63, 1], ["\ud800", 1],
    ["2013-01-01T00:00:00+00:00", 1], ["2013-01-01T00:00:00+00:00", 2**63],
    ["0001-01-01T00:00Z", 1], ["\0", 1], [None, None], [[]], {}, {"a": 1}, [{"a": "\ud800"}],
)  # fmt: skip
TEXTS = (
    "nonsense", "%00", "%ff", "=", "====", "a", "Ilx1ZDgwMCI", "%F0%9F%98%80", "bnVsbA=",
    "A" * 5000,
    *(base64.urlsafe_b64encode(body).decode() for body in (
        b"\xff\xfe", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"[" * 50_000, b'"\\ud800"', b"{",
    )),
)  # fmt: skip


@pytest.fixture(autouse=True)
def lists(raw_flights: Asset) -> None:
    """Create assets of each kind, one with a schedule that has no ticks."""
    factories.asset("weather", factories.DAY_BY_AIRPORT)
    factories.asset("carriers")
    factories.asset("followed", factories.DAILY_2013)


def _address(path: str, cursor: str) -> str:
    return f"/api/v1/{path}{'&' if '?' in path else '?'}cursor={cursor}"


@pytest.mark.parametrize("path", LISTS)
def test_a_forged_cursor_is_answered(viewer_api: APIClient, path: str) -> None:
    forged = [
        base64.urlsafe_b64encode(json.dumps(position).encode()).decode() for position in POSITIONS
    ]
    for cursor in (*forged, *TEXTS):
        answer = viewer_api.get(_address(path, cursor))
        assert answer.status_code in (200, 400), (cursor[:80], answer.content[:300])
        if answer.status_code == 400:
            assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "cursor", ["Ilx1ZDgwMCI", encode_cursor({"a": 1}), encode_cursor([1, 2.5]), encode_cursor(-1)]
)
def test_forged_cursors_are_refused(viewer_api: APIClient, path: str, cursor: str) -> None:
    answer = viewer_api.get(_address(path, cursor))
    assert answer.status_code == 400
    assert "cursor" in answer.json()["errors"]


def test_a_cursor_of_another_list_is_answered(viewer_api: APIClient) -> None:
    cursors = [
        encode_cursor(position)
        for position in ("weather", 7, [1, 2], [datetime(2013, 1, 1, tzinfo=UTC).isoformat(), 3])
    ]
    for path in LISTS:
        for cursor in cursors:
            assert viewer_api.get(_address(path, cursor)).status_code in (200, 400)
