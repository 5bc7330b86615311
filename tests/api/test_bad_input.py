"""Every door answers nonsense with a sentence, and nothing is created."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from assets_app.models import Asset, Run, RunGroup
from backfills_app.models import Backfill

GOOD = {"asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-31"}
BACKFILLS = "/api/v1/backfills/"
PREVIEW = "/api/v1/backfills/preview/"
MATERIALIZE = "/api/v1/assets/raw_flights/materialize/"


@pytest.fixture(autouse=True)
def nothing_created(raw_flights: Asset) -> Any:
    yield
    assert not Backfill.objects.exists()
    assert not Run.objects.exists()
    assert not RunGroup.objects.exists()


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    return body


@pytest.mark.parametrize("address", [BACKFILLS, PREVIEW])
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"asset": "raw_flight"}, "asset"),
        ({"asset": ""}, "asset"),
        ({"asset": None}, "asset"),
        ({"asset": 7}, "asset"),
        ({"asset": ["raw_flights"]}, "asset"),
        ({"asset": "a\0b"}, "asset"),
        ({"asset": "\ud800"}, "asset"),
        ({"asset": "x" * 100_000}, "asset"),
        ({"start": "2013-02-01"}, "end"),
        ({"end": "2012-12-31"}, ""),
        ({"start": "2099-01-01", "end": "2099-01-31"}, ""),
        ({"start": "yesterday"}, "start"),
        ({"start": "2013-02-30"}, "start"),
        ({"end": "2013-13-01"}, "end"),
        ({"start": 20130101}, "start"),
        ({"start": None}, "start"),
        ({"start": ""}, "start"),
        ({"end": "\N{SNOWMAN}"}, "end"),
        ({"max_active_runs": 0}, "max_active_runs"),
        ({"max_active_runs": -1}, "max_active_runs"),
        ({"max_active_runs": 10**30}, "max_active_runs"),
        ({"max_active_runs": 1.5}, "max_active_runs"),
        ({"max_active_runs": True}, "max_active_runs"),
        ({"max_active_runs": "3"}, "max_active_runs"),
        ({"max_active_runs": None}, "max_active_runs"),
        ({"strategy": "sometimes"}, "strategy"),
        ({"strategy": 0}, "strategy"),
        ({"strategy": 10**30}, "strategy"),
        ({"strategy": {"n": 1}}, "strategy"),
        ({"existing": "some"}, "existing"),
        ({"existing": ["all"]}, "existing"),
        ({"params": []}, "params"),
        ({"params": "x"}, "params"),
        ({"params": {"unheard_of": 1}}, "params"),
        ({"params": {"limit": "\0"}}, "params"),
        ({"description": "x" * 1001}, "description"),
        ({"description": {}}, "description"),
        ({"max_runs": 3}, "max_runs"),
        ({"order": "random"}, "order"),
        ({"order": ["oldest"]}, "order"),
        ({"allow_holes": "yes"}, "allow_holes"),
        ({"allow_holes": 1}, "allow_holes"),
        ({"allow_holes": None}, "allow_holes"),
        ({"selection": 2013}, "selection"),
        ({"selection": "2013-01"}, "selection"),
        ({"selection": "2013-01", "start": "", "end": "x"}, "selection"),
        ({"selection": "a\0b", "start": "", "end": ""}, "selection"),
        ({"selection": "yesterday", "start": "", "end": ""}, "selection"),
        ({"selection": "x" * 100_001, "start": "", "end": ""}, "selection"),
        ({"assets": ["raw_flights"]}, "assets"),
        ({"assets": []}, "assets"),
        ({"assets": "raw_flights"}, "assets"),
        ({"assets": [None]}, "assets"),
        ({"assets": ["x"] * 1001}, "assets"),
        ({"asset_group": "flights"}, "asset_group"),
        ({"asset_group": 3}, "asset_group"),
        ({"asset_tag": "late"}, "asset_tag"),
        ({"asset_tag": "\0"}, "asset_tag"),
        ({"upstream": "yes"}, "upstream"),
        ({"upstream": None}, "upstream"),
        ({"downstream": 3}, "downstream"),
        ({"downstream": {"all": True}}, "downstream"),
        ({"downstream": [3]}, "downstream"),
        ({"downstream": "nobody"}, "downstream"),
        ({"downstream": ["all", "weather"]}, "downstream"),
        ({"downstream": ["x"] * 1001}, "downstream"),
        ({"code_version": 4}, "code_version"),
        ({"code_version": "9999999"}, "code_version"),
        ({"code_version": "\0"}, "code_version"),
        ({"start_at": "tomorrow"}, "start_at"),
        ({"start_at": 1}, "start_at"),
        ({"start_at": "9999-99-99T99:99"}, "start_at"),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_a_wrong_field_of_a_backfill_is_named(
    api: APIClient, address: str, change: dict[str, Any], field: str
) -> None:
    # Escaped, so that anything can be sent.
    sent = json.dumps(GOOD | change)
    body = problem(api.post(address, sent, content_type="application/json"), 400)
    errors = body["errors"]
    assert errors if field == "" else field in errors, errors
    assert all(sentence for sentences in errors.values() for sentence in sentences)


@pytest.mark.parametrize("address", [BACKFILLS, PREVIEW, MATERIALIZE])
@pytest.mark.parametrize(
    "params",
    [
        '{"limit": "\\u0000"}', '{"\\u0000": 1}', '{"limit": ["\\ud800"]}', '{"limit": 1e999}',
        '{"limit": {"a": -1e999}}', '{"limit": ' + "9" * 2000 + "}",
        '{"limit": ' + "[" * 200 + "]" * 200 + "}",
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_params_that_cannot_be_kept_are_named(api: APIClient, address: str, params: str) -> None:
    good = {"selection": "2013-01-01"} if address == MATERIALIZE else GOOD
    sent = json.dumps(good)[:-1] + f', "params": {params}}}'
    body = problem(api.post(address, sent, content_type="application/json"), 400)
    assert set(body["errors"]) == {"params"}


@pytest.mark.parametrize("address", [BACKFILLS, PREVIEW, MATERIALIZE])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "9" * 5000], ids=lambda text: text[:9])
def test_numbers_that_json_does_not_have_are_refused(
    api: APIClient, address: str, value: str
) -> None:
    good = {"selection": "2013-01-01"} if address == MATERIALIZE else GOOD
    sent = json.dumps(good)[:-1] + f', "params": {{"limit": {value}}}}}'
    problem(api.post(address, sent, content_type="application/json"), 400)


@pytest.mark.parametrize("address", [BACKFILLS, PREVIEW, MATERIALIZE])
def test_a_strategy_of_many_digits_is_named(api: APIClient, address: str) -> None:
    good = {"selection": "2013-01-01"} if address == MATERIALIZE else GOOD
    body = problem(api.post(address, good | {"strategy": "9" * 5000}, format="json"), 400)
    assert "strategy" in body["errors"]


def test_a_selection_of_endless_length_is_named(api: APIClient) -> None:
    selection = "2013-01-01," * 20_000
    body = problem(api.post(MATERIALIZE, {"selection": selection}, format="json"), 400)
    assert "selection" in body["errors"]


@pytest.mark.parametrize("address", [BACKFILLS, PREVIEW, MATERIALIZE])
@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", '"text"', "null", "7", "NaN", "{}x", "[" * 100_000, b"\xff\xfe", "9" * 10_000],
    ids=lambda body: repr(body[:10]),
)
def test_a_body_that_is_no_object_is_refused(
    api: APIClient, address: str, body: str | bytes
) -> None:
    if address == MATERIALIZE and body == "":
        body = "{"
    problem(api.post(address, body, content_type="application/json"), 400)


def test_a_form_is_not_json(api: APIClient) -> None:
    problem(api.post(BACKFILLS, GOOD, format="multipart"), 415)


def test_a_body_beyond_the_limit_is_too_large(api: APIClient) -> None:
    body = problem(api.post(BACKFILLS, GOOD | {"description": "x" * 3_000_000}, format="json"), 413)
    assert "DATA_UPLOAD_MAX_MEMORY_SIZE" in body["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "selection"),
        ({"selection": "2012-01-01"}, "selection"),
        ({"selection": "2013-01-01.."}, "selection"),
        ({"selection": "date=2013"}, "selection"),
        ({"selection": 2013}, "selection"),
        ({"selection": "2013-01-01", "strategy": "half"}, "strategy"),
        ({"selection": "2013-01-01", "params": {"unheard_of": 1}}, "params"),
        ({"partition": "2013-01-01"}, "partition"),
    ],
    ids=str,
)
def test_a_wrong_field_of_a_request_to_materialize_is_named(
    api: APIClient, body: dict[str, Any], field: str
) -> None:
    assert field in problem(api.post(MATERIALIZE, body, format="json"), 400)["errors"]


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/assets/nothing/",
        "/api/v1/assets/a%00b/",
        "/api/v1/assets/nothing/partitions/",
        "/api/v1/runs/1/",
        "/api/v1/runs/1/log/",
        "/api/v1/runs/999999999999999999999999/",
        "/api/v1/backfills/1/",
        "/api/v1/backfills/999999999999999999999999/",
        "/api/v1/backfills/999999999999999999999999/partitions/",
        "/api/v1/nowhere/",
        "/api/v1/runs/one/",
        "/api/v1/runs",
        "/api/",
    ],
)
def test_unknown_addresses_are_not_found(api: APIClient, address: str) -> None:
    problem(api.get(address), 404)


def test_writes_to_what_is_not_there_are_not_found(api: APIClient) -> None:
    for address in ("assets/nothing/materialize/", "runs/1/cancel/", "backfills/1/cancel/"):
        problem(api.post(f"/api/v1/{address}", {}, format="json"), 404)


@pytest.mark.parametrize(
    "query",
    [
        "cursor=nonsense", "cursor=%00", "cursor=bnVsbA", "cursor=eyJhIjoxfQ", "page_size=0",
        "page_size=-1", "page_size=many", "page_size=99999999999", "stat=failed",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["assets/", "runs/", "backfills/", "assets/raw_flights/partitions/"]
)
def test_wrong_query_parameters_are_refused(api: APIClient, path: str, query: str) -> None:
    if query == "cursor=bnVsbA":
        # The JSON null: the beginning.
        assert api.get(f"/api/v1/{path}?{query}").status_code == 200
        return
    problem(api.get(f"/api/v1/{path}?{query}"), 400)


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/runs/?state=flying",
        "/api/v1/runs/?group=x",
        "/api/v1/runs/?group=99999999999999999999999999",
        "/api/v1/runs/?created_after=noon",
        "/api/v1/runs/?asset=%00",
        "/api/v1/backfills/?state=x",
        "/api/v1/assets/?paused=perhaps",
        "/api/v1/assets/?tag=%00",
        "/api/v1/assets/raw_flights/partitions/?state=gone",
        "/api/v1/assets/raw_flights/partitions/?selection=2013..",
        "/api/v1/assets/raw_flights/partitions/?selection=%00",
        f"/api/v1/assets/raw_flights/partitions/?selection={'2013,' * 3000}",
    ],
)
def test_wrong_filters_are_refused(api: APIClient, address: str) -> None:
    problem(api.get(address), 400)


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_methods_that_are_not_there_are_refused(api: APIClient, method: str) -> None:
    problem(getattr(api, method)(BACKFILLS, {}, format="json"), 405)


@pytest.mark.parametrize("path", ["assets/", "runs/", "backfills/", "runs/1/", "schema/"])
def test_nobody_looks_without_sign_in(stranger_api: APIClient, path: str) -> None:
    response = stranger_api.get(f"/api/v1/{path}")
    problem(response, 401)
    assert response["WWW-Authenticate"] == "Bearer"


def test_nobody_writes_without_sign_in(stranger_api: APIClient) -> None:
    problem(stranger_api.post(BACKFILLS, GOOD, format="json"), 401)
    problem(stranger_api.post(MATERIALIZE, {"selection": "2013-01-01"}, format="json"), 401)


@pytest.mark.parametrize("token", ["x", "x" * 64, "\xff", "a b", "", "a\0b", "%00"])
def test_a_wrong_token_is_no_sign_in(stranger_api: APIClient, token: str) -> None:
    problem(stranger_api.get("/api/v1/runs/", HTTP_AUTHORIZATION=f"Bearer {token}"), 401)


def test_a_viewer_may_not_write(viewer_api: APIClient) -> None:
    body = problem(viewer_api.post(BACKFILLS, GOOD, format="json"), 403)
    assert "operator" in body["detail"]
    problem(viewer_api.post(MATERIALIZE, {"selection": "2013-01-01"}, format="json"), 403)


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e9"])
def test_an_unfit_idempotency_key_is_refused(api: APIClient, key: str) -> None:
    problem(api.post(BACKFILLS, GOOD, format="json", HTTP_IDEMPOTENCY_KEY=key), 400)


@pytest.mark.parametrize("name", ["group", "tick"])
@pytest.mark.parametrize("number", ["-1", "1.5", "-1e999999999", "1e3", "9" * 5000, "x"])
def test_the_number_of_a_row_is_one(api: APIClient, name: str, number: str) -> None:
    problem(api.get(f"/api/v1/runs/?{name}={number}"), 400)
