"""Backfills through the API."""

import pytest
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, User
from assets_app.models import Asset
from backfills_app.models import Backfill
from backfills_app.services import PlanLimit, request_from_text
from backfills_app.services.request import nothing_to_run
from slicewise import PartitionByInterval
from slicewise_server.web.request_errors import ConflictingRequest
from tests.backfills.driven_backfills import following
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013
from tests.partition_records import record

ADDRESS = "/api/v1/backfills/"
REQUEST = {"asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-31", "strategy": 10}

pytestmark = pytest.mark.usefixtures("raw_flights")


def test_a_backfill_is_created_and_read(api: APIClient, olga: User) -> None:
    created = api.post(ADDRESS, REQUEST | {"description": "January"}, format="json")
    assert created.status_code == 201, created.content
    body = created.json()
    assert created["Location"] == f"{ADDRESS}{body['id']}/"
    assert body["asset"] == "raw_flights"
    assert body["start_date"] == "2013-01-01T00:00:00Z"
    assert body["end_date"] == "2013-02-01T00:00:00Z"
    assert body["description"] == "January"
    assert body["strategy"] == 10
    assert body["submitted_by"] == "olga"
    assert body["counts"]["total"] == 31
    assert api.get(created["Location"]).json()["id"] == body["id"]
    assert [row["id"] for row in api.get(ADDRESS).json()["results"]] == [body["id"]]
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.subject_type) == (olga, "backfill")


def test_a_preview_says_what_creation_would_do_and_writes_nothing(api: APIClient) -> None:
    plan = api.post(f"{ADDRESS}preview/", REQUEST, format="json")
    assert plan.status_code == 200, plan.content
    body = plan.json()
    assert (body["total"], body["runs"]) == (31, 4)
    assert (body["first_key"], body["last_key"]) == ("2013-01-01", "2013-01-31")
    assert not Backfill.objects.exists()


def test_the_same_request_with_its_key_is_done_once(api: APIClient) -> None:
    first = api.post(ADDRESS, REQUEST, format="json", HTTP_IDEMPOTENCY_KEY="january")
    again = api.post(ADDRESS, REQUEST, format="json", HTTP_IDEMPOTENCY_KEY="january")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again["Location"] == first["Location"]
    assert again["Idempotency-Replayed"] == "true"
    assert Backfill.objects.count() == 1


def test_another_request_with_the_same_key_is_refused(api: APIClient) -> None:
    api.post(ADDRESS, REQUEST, format="json", HTTP_IDEMPOTENCY_KEY="january")
    answer = api.post(
        ADDRESS, REQUEST | {"end": "2013-02-28"}, format="json", HTTP_IDEMPOTENCY_KEY="january"
    )
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    assert Backfill.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(api: APIClient) -> None:
    wrong = REQUEST | {"max_active_runs": 0}
    refused = api.post(ADDRESS, wrong, format="json", HTTP_IDEMPOTENCY_KEY="january")
    assert refused.status_code == 400
    created = api.post(ADDRESS, REQUEST, format="json", HTTP_IDEMPOTENCY_KEY="january")
    assert created.status_code == 201


def test_a_request_that_would_run_nothing_is_refused(api: APIClient, raw_flights: Asset) -> None:
    following("delays", DAILY_2013, of={"raw_flights": None})
    answer = api.post(ADDRESS, REQUEST | {"asset": "delays"}, format="json")
    assert answer.status_code == 409
    assert "31 partitions need missing upstream partitions" in answer.content.decode()
    first = api.post(ADDRESS, REQUEST, format="json").json()
    record(raw_flights, "2013-01")
    for again in (
        api.post(ADDRESS, REQUEST, format="json"),
        api.post(f"{ADDRESS}{first['id']}/clone/", {}, format="json"),
    ):
        assert again.status_code == 409
        assert "Nothing to run: 31 partitions are materialized." in again.content.decode()
    assert Backfill.objects.count() == 1
    assert api.post(ADDRESS, REQUEST | {"existing": "all"}, format="json").status_code == 201


def test_a_request_of_many_partitions_is_accepted_without_a_look_at_their_records(
    api: APIClient, raw_flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(raw_flights, "2013-01")
    monkeypatch.setattr(nothing_to_run, "_EXAMINED", PlanLimit(partitions=30, upstream_rows=0))
    assert api.post(ADDRESS, REQUEST, format="json").status_code == 201
    monkeypatch.setattr(nothing_to_run, "_EXAMINED", PlanLimit(partitions=31, upstream_rows=0))
    assert api.post(ADDRESS, REQUEST, format="json").status_code == 409


def test_a_request_that_needs_many_upstream_partitions_is_accepted_without_a_look_at_these(
    api: APIClient, raw_flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    yearly = PartitionByInterval("@yearly", start="2013-01-01")
    following("delays", yearly, of={"raw_flights": None})
    request = {"asset": "delays", "start": "2013", "end": "2013"}
    monkeypatch.setattr(nothing_to_run, "_EXAMINED", PlanLimit(partitions=1, upstream_rows=364))
    assert api.post(ADDRESS, request, format="json").status_code == 201
    monkeypatch.setattr(nothing_to_run, "_EXAMINED", PlanLimit(partitions=1, upstream_rows=365))
    answer = api.post(ADDRESS, request, format="json")
    assert answer.status_code == 409
    assert "1 partition needs missing upstream partitions" in answer.content.decode()


def test_an_unchanged_backfill_is_not_sent_again(api: APIClient) -> None:
    address = api.post(ADDRESS, REQUEST, format="json")["Location"]
    first = api.get(address)
    assert api.get(address, HTTP_IF_NONE_MATCH=first["ETag"]).status_code == 304
    Backfill.objects.update(description="changed")
    second = api.get(address, HTTP_IF_NONE_MATCH=first["ETag"])
    assert second.status_code == 200
    assert second["ETag"] != first["ETag"]


def test_a_backfill_is_canceled_once(api: APIClient) -> None:
    address = api.post(ADDRESS, REQUEST, format="json")["Location"]
    canceled = api.post(f"{address}cancel/")
    assert canceled.status_code == 200, canceled.content
    assert canceled.json()["state"] in ("canceling", "canceled")
    Backfill.objects.get()
    if canceled.json()["state"] == "canceled":
        assert api.post(f"{address}cancel/").status_code == 409


def test_its_partitions_are_listed(api: APIClient) -> None:
    address = api.post(ADDRESS, REQUEST, format="json")["Location"]
    assert api.get(f"{address}partitions/?state=waiting").status_code == 200


def test_lists_are_narrowed_by_asset_and_state(api: APIClient, weather: Asset) -> None:
    api.post(ADDRESS, REQUEST, format="json")
    assert len(api.get(f"{ADDRESS}?asset=raw_flights").json()["results"]) == 1
    assert api.get(f"{ADDRESS}?asset=weather").json()["results"] == []
    assert api.get(f"{ADDRESS}?state=succeeded").json()["results"] == []


def test_an_asset_without_time_is_to_be_materialized_instead(
    api: APIClient, carriers: Asset
) -> None:
    response = api.post(ADDRESS, REQUEST | {"asset": "carriers"}, format="json")
    assert response.status_code == 400
    assert "materialize" in response.json()["errors"]["asset"][0]


def test_several_assets_are_planned_and_made_in_their_order(
    api: APIClient, raw_flights: Asset
) -> None:
    following("delays", DAILY_2013, of={"raw_flights": None})
    days = {"start": "2013-01-01", "end": "2013-01-03"}
    request = days | {"assets": ["delays", "raw_flights"]}
    plan = api.post(f"{ADDRESS}preview/", request, format="json").json()
    rows = [
        (asset["asset"], asset["role"], asset["layer"], asset["total"]) for asset in plan["assets"]
    ]
    assert rows == [("raw_flights", "chosen", 1, 3), ("delays", "chosen", 2, 3)]
    created = api.post(ADDRESS, request, format="json")
    assert created.status_code == 201, created.content
    body = created.json()
    assert (body["asset"], body["counts"]["total"]) == ("delays", 6)
    assert body["chosen_by"] == request
    assert (body["upstream"], body["downstream"]) == ([], [])
    with_upstream = api.post(
        ADDRESS, days | {"asset": "delays", "upstream": True}, format="json"
    ).json()
    assert (with_upstream["asset"], with_upstream["upstream"]) == ("delays", ["raw_flights"])
    assert [asset["role"] for asset in with_upstream["assets"]] == ["upstream", "chosen"]
    for name, expected in (("raw_flights", [body]), ("delays", [with_upstream, body])):
        listed = api.get(ADDRESS, {"asset": name}).json()["results"]
        assert [backfill["id"] for backfill in listed] == [backfill["id"] for backfill in expected]
    clone = api.post(f"{ADDRESS}{with_upstream['id']}/clone/", {}, format="json").json()
    assert (clone["upstream"], clone["chosen_by"]) == (["raw_flights"], with_upstream["chosen_by"])
    record(raw_flights, "2013-01-01..2013-01-03")
    plain = api.post(
        f"{ADDRESS}{with_upstream['id']}/clone/", {"upstream": False}, format="json"
    ).json()
    assert (plain["upstream"], plain["chosen_by"]) == ([], {})


def test_an_error_in_one_of_several_assets_is_named_and_creates_nothing(api: APIClient) -> None:
    days = {"start": "2013-01-01", "end": "2013-01-03"}
    for changes, field in (
        ({"assets": ["raw_flights", "nobody"]}, "assets"),
        ({"asset_group": "none"}, "asset_group"),
        ({"asset_tag": "none"}, "asset_tag"),
        ({}, "asset"),
    ):
        for address in (ADDRESS, f"{ADDRESS}preview/"):
            answer = api.post(address, days | changes, format="json")
            assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not Backfill.objects.exists()


def test_a_later_backfill_of_stale_partitions_is_accepted(
    api: APIClient, raw_flights: Asset
) -> None:
    record(raw_flights, "2013-01")
    stale = REQUEST | {"existing": "stale"}
    assert api.post(ADDRESS, stale, format="json").status_code == 409
    later = stale | {"start_at": "2099-01-01T06:00"}
    assert api.post(ADDRESS, later, format="json").status_code == 201


def test_a_form_sent_twice_at_once_is_not_refused_for_its_own_backfill(
    raw_flights: Asset, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(raw_flights, "2013-01")
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-31")
    first = create_backfill(request, user=olga, submission="digest")
    assert nothing_to_run.request_backfill(request, user=olga, submission="digest") == first
    with pytest.raises(ConflictingRequest, match="Nothing to run"):
        nothing_to_run.request_backfill(request, user=olga, submission="other")
