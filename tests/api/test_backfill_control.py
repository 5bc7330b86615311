"""Pause, change, retry, clone and delete backfills through the API."""

from datetime import datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, Grant, User
from accounts_app.policy import Role
from assets_app.models import Asset, Gateway
from backfills_app.models import Backfill
from backfills_app.services import pause_backfill, request_from_text
from backfills_app.services.advance.advancing import advance
from tests import factories
from tests.attempts import publish
from tests.backfills.backfill_states import Desk
from tests.backfills.conftest import worker
from tests.backfills.driven_backfills import run_all
from tests.created_backfills import create_backfill
from tests.described_answers import DescribedClient
from tests.execution.conftest import sent

__all__ = ["sent", "worker"]

ADDRESS = "/api/v1/backfills/"
REQUEST = {"asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-06"}
# Of the backfill table of the source document, by the names that they have here.
COLUMNS = {
    "backfill_dag_id": "name", "dag_id": "asset", "state": "state", "description": "description",
    "start_date": "start_date", "end_date": "end_date", "logical_dates": "logical_dates",
    "dag_params": "params", "max_active_runs": "max_active_runs",
    "scheduled_date": "scheduled_date", "delete_date": "delete_date",
    "relative_fileloc": "relative_fileloc", "origin_code": "origin_code",
    "submitted_at": "submitted_at", "submitted_by": "submitted_by", "updated_at": "updated_at",
    "deleted": "deleted", "run_start_date": "run_start_date", "run_end_date": "run_end_date",
}  # fmt: skip
VERBS = ("pause", "resume", "cancel", "retry-failed", "clone")

pytestmark = pytest.mark.usefixtures("raw_flights", "sent")


@pytest.fixture
def address(api: APIClient) -> str:
    return str(api.post(ADDRESS, REQUEST, format="json")["Location"])


def test_every_column_of_the_source_design_is_there(api: APIClient, address: str) -> None:
    body = api.get(address).json()
    assert set(COLUMNS.values()) <= set(body)
    assert body["origin_code"] == "def raw_flights(): ..."
    assert body["relative_fileloc"] == "flights.py"
    assert (body["deleted"], body["delete_date"], body["scheduled_date"]) == (False, None, None)
    (listed,) = api.get(ADDRESS).json()["results"]
    assert set(COLUMNS.values()) - {"origin_code"} <= set(listed)


def test_the_options_of_a_request_can_be_read_back(api: APIClient, address: str) -> None:
    request = {
        "asset": "raw_flights", "selection": "2013-02", "order": "newest", "existing": "all",
        "allow_holes": True, "start_at": "2099-01-01T06:00", "max_active_runs": 2,
        "params": {"limit": 3}, "downstream": "none",
    }  # fmt: skip
    body = api.post(ADDRESS, request, format="json").json()
    assert (body["order"], body["existing"], body["allow_holes"]) == ("newest", "all", True)
    assert (body["scheduled_date"], body["priority"]) == ("2099-01-01T06:00:00Z", 0)
    assert (body["params"], body["downstream"]) == ({"limit": 3}, [])
    assert len(body["code_version"]["digest"]) == 64
    (asset,) = body["assets"]
    assert (asset["selection"], asset["total"], asset["strategy"]) == (
        "2013-02-01..2013-02-28", 28, "partition",
    )  # fmt: skip


def test_it_is_paused_resumed_and_canceled(api: APIClient, address: str) -> None:
    assert api.get(address).json()["paused_by"] is None
    paused = api.post(f"{address}pause/").json()
    assert (paused["state"], paused["paused_by"]) == ("paused", "olga")
    entry = AuditEntry.objects.get(action="pause")
    assert datetime.fromisoformat(paused["paused_at"]) == entry.at
    (listed,) = api.get(ADDRESS).json()["results"]
    assert (listed["paused_by"], listed["paused_at"]) == ("olga", paused["paused_at"])
    again = api.post(f"{address}pause/")
    assert again.status_code == 409
    assert "is paused already" in again.json()["detail"]
    resumed = api.post(f"{address}resume/").json()
    assert (resumed["state"], resumed["paused"]) == ("creating", False)
    assert (resumed["paused_by"], resumed["paused_at"]) == (None, None)
    assert api.post(f"{address}cancel/").json()["state"] == "canceled"
    trail = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(trail) == ["create", "pause", "resume", "cancel"]


def test_a_pause_sent_twice_with_its_key_is_one(api: APIClient, address: str) -> None:
    answers = [api.post(f"{address}pause/", HTTP_IDEMPOTENCY_KEY="tonight") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert AuditEntry.objects.filter(action="pause").count() == 1


def test_it_is_changed_while_it_runs(api: APIClient, address: str) -> None:
    changes = {"max_active_runs": 9, "priority": 4, "order": "newest", "description": "why"}
    body = api.patch(address, changes, format="json").json()
    assert {name: body[name] for name in changes} == changes
    api.post(f"{address}cancel/")
    refused = api.patch(address, {"priority": 1}, format="json")
    assert (refused.status_code, "is canceled already" in refused.json()["detail"]) == (409, True)
    assert api.patch(address, {"description": ""}, format="json").json()["description"] == ""


def test_failed_partitions_are_grouped_by_error_and_retried(
    api: APIClient, address: str, worker: Gateway
) -> None:
    run_all(worker, failing=("2013-01-02", "2013-01-05"))
    body = api.get(address).json()
    assert (body["state"], body["counts"]["failed"]) == ("partially_failed", 2)
    assert (body["progress"]["percent_made"], body["progress"]["seconds_left"]) == (66, None)
    outcome = api.get(f"{address}outcome/").json()
    (failure,) = outcome["failures"]
    assert (failure["error"], failure["runs"]) == ("ValueError: no", 2)
    assert {example["selection"] for example in failure["examples"]} == {"2013-01-02", "2013-01-05"}
    again = api.post(f"{address}retry-failed/", {}, format="json").json()
    assert (again["state"], again["counts"]["waiting"], again["run_end_date"]) == (
        "running", 2, None,
    )  # fmt: skip
    run_all(worker)
    assert api.get(address).json()["state"] == "succeeded"
    refused = api.post(f"{address}retry-failed/", {"code": "newest"}, format="json")
    assert refused.status_code == 409


def test_skipped_partitions_are_listed_by_reason_and_holding_backfill(
    api: APIClient, address: str
) -> None:
    advance()
    assert api.post(ADDRESS, REQUEST, format="json").status_code == 409
    more = REQUEST | {"start": "2013-01-01", "end": "2013-01-07"}
    second = api.post(ADDRESS, more, format="json")["Location"]
    advance()
    outcome = api.get(f"{second}outcome/")
    first = Backfill.objects.get(pk=int(address.split("/")[-2]))
    (skip,) = outcome.json()["skipped"]
    assert (skip["reason"], skip["asset"]) == ("in_flight", "raw_flights")
    assert skip["others"] == [{"backfill": first.pk, "name": first.name}]
    skipped = api.get(f"{second}partitions/?state=skipped&reason=in_flight").json()["results"]
    assert len(skipped) == skip["partitions"] > 0
    second_answer = api.get(f"{second}outcome/", HTTP_IF_NONE_MATCH=outcome["ETag"])
    assert second_answer.status_code == 304


def test_while_it_runs_it_tells_how_far_it_is(
    api: APIClient, address: str, worker: Gateway
) -> None:
    desk = Desk.__new__(Desk)
    desk.worker, desk.backfill = worker, Backfill.objects.get()
    for _ in range(2):
        for attempt in desk.run_some(2):
            publish(attempt)
    desk.run_some(1)
    progress = api.get(address).json()["progress"]
    assert (progress["made"], progress["percent_made"], progress["running"]) == (4, 66, 2)
    assert progress["per_second"] > 0
    assert progress["seconds_left"] > 0
    pause_backfill(desk.backfill, user=User.objects.get())
    body = api.get(address).json()
    assert (body["state"], body["progress"]["running"]) == ("paused", 1)


def test_a_clone_is_the_same_request_but_for_what_is_given(api: APIClient, address: str) -> None:
    created = api.post(f"{address}clone/", {"existing": "all", "end": "2013-01-03",
                                            "start": "2013-01-02"}, format="json")  # fmt: skip
    assert created.status_code == 201, created.content
    body = created.json()
    assert created["Location"] == f"{ADDRESS}{body['id']}/"
    assert (body["logical_dates"], body["existing"]) == ("2013-01-02..2013-01-03", "all")
    plain = api.post(f"{address}clone/").json()
    assert (plain["logical_dates"], plain["existing"]) == (
        "2013-01-01..2013-01-06", "missing_and_failed",
    )  # fmt: skip
    clones = AuditEntry.objects.filter(action="clone")
    assert clones.count() == 2
    wrong = api.post(f"{address}clone/", {"asset": "weather"}, format="json")
    assert (wrong.status_code, set(wrong.json()["errors"])) == (400, {"asset"})


def test_it_is_deleted_once_it_has_ended_and_its_record_stays(api: APIClient, address: str) -> None:
    assert api.delete(address).status_code == 409
    api.post(f"{address}cancel/")
    assert api.delete(address).status_code == 204
    assert api.get(ADDRESS).json()["results"] == []
    (deleted,) = api.get(f"{ADDRESS}?deleted=true").json()["results"]
    body = api.get(address).json()
    assert body["id"] == deleted["id"]
    assert body["deleted"]
    assert body["delete_date"]
    for again in (api.delete(address), api.post(f"{address}pause/")):
        assert again.status_code == 409
        assert "was deleted" in again.json()["detail"]
    assert api.post(f"{address}clone/").status_code == 201


def test_several_are_done_at_once_and_each_refusal_is_told(api: APIClient, address: str) -> None:
    first = int(address.split("/")[-2])
    second = api.post(ADDRESS, REQUEST, format="json").json()["id"]
    api.post(f"{address}pause/")
    request = {"action": "pause", "backfills": [first, second, 999_999]}
    body = api.post(f"{ADDRESS}bulk/", request, format="json").json()
    assert body["done"] == [second]
    assert [refusal["backfill"] for refusal in body["refused"]] == [first, 999_999]
    again = api.post(f"{ADDRESS}bulk/", request, format="json")
    assert again.status_code == 409
    assert "is paused already" in again.json()["detail"]
    assert api.post(f"{ADDRESS}bulk/", request | {"action": "cancel"}, format="json").json()[
        "done"
    ] == [first, second]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("patch", {}, ""),
        ("patch", {"max_active_runs": 0}, "max_active_runs"),
        ("patch", {"max_active_runs": "3"}, "max_active_runs"),
        ("patch", {"priority": 1.5}, "priority"),
        ("patch", {"priority": 10**30}, "priority"),
        ("patch", {"order": "random"}, "order"),
        ("patch", {"order": None}, "order"),
        ("patch", {"description": "x" * 1001}, "description"),
        ("patch", {"state": "succeeded"}, "state"),
        ("patch", {"strategy": 3}, "strategy"),
        ("retry-failed", {"code": "older"}, "code"),
        ("retry-failed", {"runs": [1]}, "runs"),
        ("clone", {"order": "random"}, "order"),
        ("clone", {"start": "yesterday", "end": "2013-01-02"}, "start"),
        ("bulk", {}, "action"),
        ("bulk", {"action": "fly", "backfills": [1]}, "action"),
        ("bulk", {"action": "pause", "backfills": []}, "backfills"),
        ("bulk", {"action": "pause", "backfills": ["1"]}, "backfills.0"),
        ("bulk", {"action": "pause", "backfills": [0]}, "backfills.0"),
        ("bulk", {"action": "pause", "backfills": [10**30]}, "backfills.0"),
        ("bulk", {"action": "pause", "backfills": list(range(1, 300))}, "backfills"),
        ("bulk", {"action": "pause", "backfills": 1}, "backfills"),
    ],
)
def test_nonsense_is_refused_by_field_and_changes_nothing(
    api: APIClient, address: str, verb: str, body: dict[str, Any], field: str
) -> None:
    before = api.get(address).json()
    if verb == "patch":
        answer = api.patch(address, body, format="json")
    else:
        where = f"{ADDRESS}bulk/" if verb == "bulk" else f"{address}{verb}/"
        answer = api.post(where, body, format="json")
    assert answer.status_code == 400, answer.content
    assert any(name.startswith(field) for name in answer.json()["errors"]), answer.json()
    assert api.get(address).json() == before
    assert Backfill.objects.count() == 1


def test_a_backfill_that_is_not_there_is_not_found(api: APIClient) -> None:
    for number in (7, 10**30):
        where = f"{ADDRESS}{number}/"
        answers = [api.get(where), api.patch(where, {"priority": 1}, format="json"),
                   api.delete(where), api.get(f"{where}outcome/"),
                   *(api.post(f"{where}{verb}/") for verb in VERBS)]  # fmt: skip
        assert {answer.status_code for answer in answers} == {404}
        assert all(answer.json()["detail"] for answer in answers)


@pytest.mark.parametrize(
    ("role", "granted", "status"),
    [
        (None, "", 403), (Role.VIEWER, "", 403), (Role.VIEWER, "weather", 403),
        (Role.VIEWER, "raw_flights", 200), (Role.OPERATOR, "", 200), (Role.EDITOR, "", 200),
        (Role.ADMIN, "", 200), ("nobody", "", 401),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", [*VERBS, "patch", "delete", "bulk", "create", "preview"])
def test_the_whole_matrix_of_addresses_and_people(
    db: None, weather: Asset, verb: str, role: Any, granted: str, status: int
) -> None:
    ada = factories.person("ada", is_superuser=True)
    backfill = create_backfill(
        request_from_text("raw_flights", "2013-01-01", "2013-01-02"), user=ada
    )
    address = f"{ADDRESS}{backfill.pk}/"
    client = DescribedClient(raise_request_exception=False)
    if role != "nobody":
        user = factories.person("somebody", role)
        client.force_login(user)
        if granted:
            Grant.objects.create(person=user, asset=granted)
    match verb:
        case "patch":
            answer = client.patch(address, {"priority": 1}, format="json")
        case "delete":
            answer = client.delete(address)
        case "bulk":
            request = {"action": "pause", "backfills": [backfill.pk]}
            answer = client.post(f"{ADDRESS}bulk/", request, format="json")
        case "create":
            answer = client.post(ADDRESS, REQUEST, format="json")
        case "preview":
            answer = client.post(f"{ADDRESS}preview/", REQUEST, format="json")
        case _:
            answer = client.post(f"{address}{verb}/")
    # What is allowed may still contradict the state; what is not, is refused before.
    allowed = {200, 201, 204, 409}
    assert answer.status_code in allowed if status == 200 else answer.status_code == status
    trail = AuditEntry.objects.exclude(actor=ada).count()
    assert trail == 0 or status == 200


def test_of_a_canceled_one_only_what_was_made_counts_as_done(
    api: APIClient, address: str, worker: Gateway
) -> None:
    desk = Desk.__new__(Desk)
    desk.worker, desk.backfill = worker, Backfill.objects.get()
    for attempt in desk.run_some(2):
        publish(attempt)
    progress = api.get(address).json()["progress"]
    assert progress["running"] + progress["queued"] == 4
    progress = api.post(f"{address}cancel/").json()["progress"]
    assert (progress["made"], progress["percent_made"], progress["done"]) == (2, 33, 6)
    assert progress["percent"] == 100
    assert progress["summary"] == "2 of 6 materialized, 4 canceled"
