"""Ended runs once more, and the workers that execute runs, through the API."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from assets_app.models import Asset, Gateway, Run, RunGroup, RunState
from tests.gateways import record_attempt, record_gateway

MATERIALIZE = "/api/v1/assets/raw_flights/materialize/"
RETRY = "/api/v1/runs/retry/"


@pytest.fixture
def failed(api: APIClient, raw_flights: Asset) -> list[Run]:
    """Return three runs of one request; the last one was canceled."""
    api.post(MATERIALIZE, {"selection": "2013-01-01..2013-01-03"}, format="json")
    runs = list(Run.objects.order_by("id"))
    for run in runs:
        assert api.post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 200
    first, second, _ = runs
    for run in (first, second):
        # As if it had failed: the table of states knows no way from canceled to there.
        Run.objects.filter(pk=run.pk).update(state=RunState.QUEUED, ended_at=None)
        Run.objects.filter(pk=run.pk).update(
            state=RunState.FAILED, ended_at=timezone.now(), error="no rows", error_kind="code"
        )
    return runs


def reasons(answer: Any) -> dict[int, str]:
    return {refusal["run"]: refusal["reason"] for refusal in answer.json()["refused"]}


def test_a_run_is_retried(api: APIClient, failed: list[Run]) -> None:
    answer = api.post(f"/api/v1/runs/{failed[0].pk}/retry/")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["state"], answer.json()["error"]) == ("queued", "")
    again = api.post(f"/api/v1/runs/{failed[0].pk}/retry/")
    assert again.status_code == 409
    assert "it has not ended yet" in again.json()["detail"]


def test_a_run_is_run_again_as_a_new_one(api: APIClient, failed: list[Run]) -> None:
    answer = api.post(f"/api/v1/runs/{failed[0].pk}/rerun/", {"code": "newest"}, format="json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["run_count"] == 1
    assert answer["Location"] == answer.json()["runs_url"]
    assert Run.objects.count() == 4


def test_a_retry_that_is_sent_twice_with_one_key_is_done_once(
    api: APIClient, failed: list[Run]
) -> None:
    for action in ("retry", "rerun"):
        address = f"/api/v1/runs/{failed[1 if action == 'retry' else 0].pk}/{action}/"
        answers = [api.post(address, HTTP_IDEMPOTENCY_KEY=action) for _ in range(2)]
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].json() == answers[1].json()
        assert answers[1]["Idempotency-Replayed"] == "true"
    assert RunGroup.objects.count() == 2


def test_several_runs_are_retried_at_once(api: APIClient, failed: list[Run]) -> None:
    first, second, third = (run.pk for run in failed)
    api.post(f"/api/v1/runs/{first}/retry/")
    answer = api.post(RETRY, {"runs": [first, second, third, 999_999]}, format="json")
    assert answer.status_code == 200, answer.content
    assert answer.json()["runs"] == [second, third]
    assert reasons(answer) == {
        first: f"Run {first} is queued: it has not ended yet.",
        999_999: "There is no run 999999.",
    }


def test_all_failed_runs_of_a_request_are_retried_at_once(
    api: APIClient, failed: list[Run]
) -> None:
    answer = api.post(RETRY, {"group": failed[0].group_id}, format="json")
    assert answer.json() == {"runs": [failed[0].pk, failed[1].pk], "refused": []}
    again = api.post(RETRY, {"group": failed[0].group_id}, format="json")
    assert again.status_code == 409
    assert "no run of the group has failed" in again.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"runs": [1], "group": 1}, ""),
        ({"runs": []}, "runs"),
        ({"runs": "1"}, "runs"),
        ({"runs": ["1"]}, "runs.0"),
        ({"runs": [0]}, "runs.0"),
        ({"runs": [2**63]}, "runs.0"),
        ({"group": 0}, "group"),
        ({"group": 999_999}, "group"),
        ({"group": True}, "group"),
        ({"runs": [1], "code": "older"}, "code"),
        ({"runs": [1], "code": None}, "code"),
        ({"runs": [1], "codes": "same"}, "codes"),
    ],
)
def test_nonsense_is_refused_at_its_field(
    api: APIClient, failed: list[Run], body: dict[str, Any], field: str
) -> None:
    answer = api.post(RETRY, body, format="json")
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["errors"]) == [field]
    assert not Run.objects.filter(state=RunState.QUEUED).exists()


@pytest.mark.parametrize("action", ["retry", "rerun"])
def test_who_may_not_and_what_is_not_there(
    viewer_api: APIClient, stranger_api: APIClient, failed: list[Run], action: str
) -> None:
    address = f"/api/v1/runs/{failed[0].pk}/{action}/"
    assert viewer_api.post(address).status_code == 403
    assert stranger_api.post(address).status_code == 401
    assert viewer_api.post(f"/api/v1/runs/999999/{action}/").status_code == 404
    assert viewer_api.post(RETRY, {"runs": [failed[0].pk]}, format="json").status_code == 403
    assert not Run.objects.filter(state=RunState.QUEUED).exists()


def test_gateways_say_what_they_do_and_how_they_stand(api: APIClient, failed: list[Run]) -> None:
    record_attempt(record_gateway("a"), failed[0])
    record_gateway("b", draining=True)
    record_gateway("c", silent_seconds=60)
    record_gateway("d", silent_seconds=60, draining=True, queue="backfill")
    Gateway.objects.filter(name="b").update(spark_away_since="2026-01-02T03:04:05Z")
    gateways = {row["name"]: row for row in api.get("/api/v1/gateways/").json()["results"]}
    assert [gateways[name]["spark_away_since"] for name in "ab"] == [None, "2026-01-02T03:04:05Z"]
    assert {name: row["state"] for name, row in gateways.items()} == {
        "a": "working",
        "b": "draining",
        "c": "lost",
        "d": "stopped",
    }
    assert (gateways["a"]["runs"], gateways["a"]["used"], gateways["a"]["free"]) == (
        [failed[0].pk],
        1,
        2,
    )
    assert [gateways[name]["free"] for name in "bcd"] == [0, 0, 0]
    narrowed = api.get("/api/v1/gateways/?queue=backfill").json()["results"]
    assert [row["name"] for row in narrowed] == ["d"]
    assert api.get("/api/v1/gateways/?state=lost").status_code == 400


def test_many_gateways_cost_as_many_statements_as_one(api: APIClient, failed: list[Run]) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as statements:
            assert api.get("/api/v1/gateways/").status_code == 200
        return len(statements)

    record_attempt(record_gateway("a"), failed[0])
    few = statements()
    for number, run in enumerate(failed[1:]):
        record_attempt(record_gateway(f"b{number}"), run)
    assert statements() == few
