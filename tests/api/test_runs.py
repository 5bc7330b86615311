"""Runs and logs of runs through the API."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from assets_app.models import Asset, Run, RunAttempt, RunLog


@pytest.fixture
def run(api: APIClient, carriers: Asset) -> Run:
    api.post("/api/v1/assets/carriers/materialize/", {}, format="json")
    return Run.objects.get()


def printed(run: Run, *texts: str) -> RunAttempt:
    now = timezone.now()
    attempt = RunAttempt.objects.create(run=run, number=1, token=uuid4(), started_at=now)
    for sequence, text in enumerate(texts):
        RunLog.objects.create(attempt=attempt, sequence=sequence, text=text)
    return attempt


def test_a_run_is_read_with_its_attempts(api: APIClient, run: Run) -> None:
    printed(run)
    body = api.get(f"/api/v1/runs/{run.pk}/").json()
    assert body["asset"] == "carriers"
    assert body["requested_by"] == "olga"
    assert body["partitions"] == {"pending": 1}
    assert [attempt["number"] for attempt in body["attempts"]] == [1]
    version = run.producer_version.bundle_version
    assert body["code_version"] == {"id": version.pk, "digest": version.digest}


def test_an_unchanged_run_is_not_sent_again(api: APIClient, run: Run) -> None:
    address = f"/api/v1/runs/{run.pk}/"
    etag = api.get(address)["ETag"]
    assert api.get(address, HTTP_IF_NONE_MATCH=etag).status_code == 304


def test_a_log_is_followed_by_its_cursor(api: APIClient, run: Run) -> None:
    attempt = printed(run, "one\n", "two\n")
    address = f"/api/v1/runs/{run.pk}/log/"

    def texts(page: Any) -> list[str]:
        return [entry["text"] for entry in page["entries"]]

    first = api.get(address).json()
    assert texts(first) == ["one\n", "two\n"]
    assert first["ended"] is False
    quiet = api.get(f"{address}?cursor={first['cursor']}").json()
    assert texts(quiet) == []
    RunLog.objects.create(attempt=attempt, sequence=2, text="three\n")
    assert texts(api.get(f"{address}?cursor={quiet['cursor']}").json()) == ["three\n"]


def test_a_queued_run_is_canceled_at_once_and_only_once(api: APIClient, run: Run) -> None:
    address = f"/api/v1/runs/{run.pk}/cancel/"
    canceled = api.post(address)
    assert canceled.status_code == 200, canceled.content
    assert canceled.json()["state"] == "canceled"
    again = api.post(address)
    assert again.status_code == 409
    assert "ended already" in again.json()["detail"]


def test_a_viewer_cancels_nothing(viewer_api: APIClient, run: Run) -> None:
    assert viewer_api.post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 403
    run.refresh_from_db()
    assert run.state == "queued"


def test_runs_are_narrowed(api: APIClient, run: Run) -> None:
    def run_count(query: str) -> int:
        return len(api.get(f"/api/v1/runs/?{query}").json()["results"])

    assert run_count("asset=carriers") == run_count("state=queued&state=running") == 1
    assert run_count("asset=weather") == run_count("state=failed") == 0


def test_partitions_beyond_the_list_of_a_run_are_on_its_next_pages(
    api: APIClient, raw_flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets_app.serializers.runs.MOST_PARTITIONS", 3)
    materialize = {"selection": "2013-01-01..2013-01-07", "strategy": "range"}
    created = api.post("/api/v1/assets/raw_flights/materialize/", materialize, format="json")
    assert created.status_code == 201, created.content
    run = Run.objects.get()
    days = [f"2013-01-{day:02}" for day in range(1, 8)]

    def keys(rows: list[Any]) -> list[str]:
        return [row["key"] for row in rows]

    detail = api.get(f"/api/v1/runs/{run.pk}/").json()
    assert keys(detail["partition_list"]) == days[:3]
    page = api.get(f"{detail['partition_list_next']}&page_size=2").json()
    assert keys(page["results"]) == days[3:5]
    last = api.get(page["next"]).json()
    assert (keys(last["results"]), last["next"]) == (days[5:], None)
    assert page["results"][0] == {
        "asset": "raw_flights", "key": days[3], "state": "pending", "rows": None, "bytes": None,
        "error": "",
    }  # fmt: skip

    partitions = f"/api/v1/runs/{run.pk}/partitions/"
    assert keys(api.get(partitions).json()["results"]) == days
    run.partitions.filter(position__lt=2).update(state="failed")
    assert keys(api.get(f"{partitions}?state=failed").json()["results"]) == days[:2]
    refused = api.get(f"{partitions}?state=lost")
    assert refused.status_code == 400
    assert "lost is no value of this parameter; there are " in refused.json()["errors"]["state"][0]
    assert "failed" in refused.json()["errors"]["state"][0]
    assert api.get("/api/v1/runs/987654321/partitions/").status_code == 404


def test_a_list_of_partitions_that_is_whole_has_no_next_page(api: APIClient, run: Run) -> None:
    assert api.get(f"/api/v1/runs/{run.pk}/").json()["partition_list_next"] is None
