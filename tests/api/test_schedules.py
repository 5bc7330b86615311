"""Schedules through the API: the rule, the ticks, and pausing."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry
from accounts_app.policy import Role
from assets_app.catalogue.timetables import pause_schedule
from assets_app.models import Asset, Schedule, ScheduleTick, ScheduleTruncation
from assets_app.scheduling.failures import record_failures
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from slicewise_server.web.api.pages import encode_cursor
from tests import factories
from tests.clients import api_client_of
from tests.scheduling.scheduled_assets import any_of, at, by, cron, scheduled

BEGAN = at(2024, 7, 1)
DAILY = factories.DAILY_2013


@pytest.fixture
def daily(db: None) -> Asset:
    return scheduled("daily", cron("@daily"), since=BEGAN, timezone="Europe/Berlin")


@pytest.fixture
def editor_api(db: None) -> APIClient:
    return api_client_of(factories.person("edith", Role.EDITOR))


def test_an_asset_tells_of_its_schedule(api: APIClient, daily: Asset) -> None:
    schedule = api.get("/api/v1/assets/daily/").json()["schedule"]
    assert schedule == {
        "text": "@daily",
        "rule": {
            "schedule": {"kind": "cron", "expression": "@daily"},
            "timezone": "Europe/Berlin", "start": None, "end": None,
        },
        "by_time": True,
        "next_at": "2024-07-01T22:00:00Z",
        "handled_until": "2024-07-01T00:00:00Z",
        "paused": False,
        "failure": None,
    }  # fmt: skip
    assert api.get("/api/v1/assets/").json()["results"][0]["schedule"] == schedule


def test_a_schedule_that_fails_says_why(api: APIClient, daily: Asset) -> None:
    (schedule,) = Schedule.objects.all()
    record_failures({schedule.pk: KeyError("gone")}, at(2024, 7, 2))
    record_failures({schedule.pk: KeyError("away")}, at(2024, 7, 2, 0, 1))
    assert api.get("/api/v1/assets/daily/").json()["schedule"]["failure"] == {
        "error": "KeyError: 'away'",
        "failures": 2,
        "since": "2024-07-02T00:00:00Z",
        "retry_at": "2024-07-02T00:03:00Z",
    }


def test_a_schedule_by_assets_has_no_ticks(api: APIClient, daily: Asset) -> None:
    scheduled("after", any_of(by("daily")), since=BEGAN)
    schedule = api.get("/api/v1/assets/after/").json()["schedule"]
    assert (schedule["text"], schedule["by_time"], schedule["next_at"]) == ("daily", False, None)
    assert api.get("/api/v1/assets/after/ticks/").json() == {"next": None, "results": []}


def test_a_schedule_that_joins_times_has_ticks(api: APIClient, daily: Asset) -> None:
    cron_schedule = {"kind": "cron", "expression": "30 6 * * *", "timezone": "Asia/Kolkata"}
    scheduled("joined", any_of(by("daily"), cron_schedule), since=BEGAN)
    schedule = api.get("/api/v1/assets/joined/").json()["schedule"]
    assert schedule["text"] == "daily | Cron('30 6 * * *', timezone='Asia/Kolkata')"
    assert schedule["rule"]["schedule"]["of"][1] == cron_schedule
    assert (schedule["by_time"], schedule["next_at"]) == (False, "2024-07-01T01:00:00Z")
    handle_ticks(at(2024, 7, 1, 1))
    (tick,) = api.get("/api/v1/assets/joined/ticks/").json()["results"]
    assert (tick["at"], tick["queued"], tick["reason"]) == ("2024-07-01T01:00:00Z", 1, "")
    (run,) = api.get(tick["runs_url"]).json()["results"]
    assert (run["asset"], run["trigger"]) == ("joined", "schedule")


def test_an_asset_that_is_made_by_hand_has_no_schedule(api: APIClient, carriers: Asset) -> None:
    assert api.get("/api/v1/assets/carriers/").json()["schedule"] is None
    assert api.get("/api/v1/assets/carriers/ticks/").json()["results"] == []
    assert api.get("/api/v1/assets/nobody/ticks/").status_code == 404


def test_ticks_come_newest_first_in_pages(api: APIClient, daily: Asset) -> None:
    for day in range(1, 6):
        handle_ticks(BEGAN + timedelta(days=day))
    address: str | None = "/api/v1/assets/daily/ticks/?page_size=2"
    ticks = []
    while address:
        page = api.get(address).json()
        ticks += page["results"]
        address = page["next"]
    assert [tick["at"][:10] for tick in ticks] == [f"2024-07-0{day}" for day in (5, 4, 3, 2, 1)]
    assert ticks[-1]["queued"] == 1
    assert ticks[0]["reason"] == "in_flight"


def test_a_tick_and_its_runs_name_each_other(api: APIClient, daily: Asset) -> None:
    for day in (2, 3):
        handle_ticks(at(2024, 7, day))
    tick = api.get("/api/v1/assets/daily/ticks/").json()["results"][-1]
    assert tick["runs_url"] == f"/api/v1/runs/?tick={tick['id']}"
    (run,) = api.get(tick["runs_url"]).json()["results"]
    assert run["tick"] == tick["id"]
    assert api.get(f"/api/v1/runs/{run['id']}/").json()["tick"] == tick["id"]
    assert api.get("/api/v1/runs/?tick=0").json()["results"] == []
    ScheduleTick.objects.all().delete()
    assert api.get(f"/api/v1/runs/{run['id']}/").json()["tick"] is None


def test_an_asset_lists_the_truncations_of_its_schedule(api: APIClient, daily: Asset) -> None:
    ScheduleTruncation.objects.create(
        asset=daily, at=BEGAN, count=7, queued=5, first="2023-01-01", last="2023-07-01",
        start="2023-01-01", end="2023-07-01",
    )  # fmt: skip
    (truncation,) = api.get("/api/v1/assets/daily/").json()["truncations"]
    assert truncation == {
        "at": "2024-07-01T00:00:00Z", "count": 7, "queued": 5, "first": "2023-01-01",
        "last": "2023-07-01", "start": "2023-01-01", "end": "2023-07-01",
    }  # fmt: skip


def test_partitions_missed_while_paused_are_in_the_answer(api: APIClient) -> None:
    scheduled(
        "days", cron("@daily"), PartitionByInterval("@daily", start="2024-01-01"), since=BEGAN
    )
    assert api.get("/api/v1/assets/days/").json()["missed"] is None
    pause_schedule(Asset.objects.get(), paused=True, now=BEGAN)
    Asset.objects.update(paused=True)
    missed = api.get("/api/v1/assets/days/").json()["missed"]
    assert (missed["first"], missed["is_all"]) == ("2024-07-01", True)
    assert missed["selection"] == f"2024-07-01..{missed['last']}"


@pytest.mark.parametrize("query", ["cursor=x", "cursor=WzEsMl0", "page_size=0", "state=failed"])
def test_a_page_of_ticks_that_makes_no_sense_is_refused(
    api: APIClient, daily: Asset, query: str
) -> None:
    assert api.get(f"/api/v1/assets/daily/ticks/?{query}").status_code == 400


@pytest.mark.parametrize("offset", ["+16:00", "-23:59"])
def test_a_page_of_ticks_begins_at_an_instant_with_any_offset(
    api: APIClient, daily: Asset, offset: str
) -> None:
    cursor = encode_cursor([f"2024-01-01T00:00{offset}", 1])
    assert api.get(f"/api/v1/assets/daily/ticks/?cursor={cursor}").status_code == 200


def test_an_editor_pauses_and_unpauses(editor_api: APIClient, daily: Asset) -> None:
    answer = editor_api.post("/api/v1/assets/daily/pause/")
    assert answer.status_code == 200, answer.content
    assert answer.json()["paused"] is True
    assert answer.json()["schedule"]["next_at"] is None
    answer = editor_api.post("/api/v1/assets/daily/unpause/")
    assert answer.json()["schedule"]["paused"] is False
    assert answer.json()["schedule"]["next_at"] > "2026"
    assert [entry.action for entry in AuditEntry.objects.order_by("id")] == ["pause", "unpause"]


def test_an_asset_whose_schedule_cannot_be_read_is_unpaused_and_tells_the_error(
    editor_api: APIClient, daily: Asset
) -> None:
    rule = {"schedule": cron("@daily"), "timezone": "Moon/Base", "start": None, "end": None}
    Schedule.objects.update(rule=rule)
    assert editor_api.post("/api/v1/assets/daily/pause/").status_code == 200
    answer = editor_api.post("/api/v1/assets/daily/unpause/")
    assert answer.status_code == 200, answer.content
    assert answer.json()["paused"] is False
    row = Schedule.objects.get()
    assert row.next_at == row.unpaused_at
    # As any schedule that fails, it keeps its error and is tried again.
    handle_ticks(row.handled_until)
    row.refresh_from_db()
    assert "Moon/Base" in row.error
    assert row.retry_at
    assert row.next_at == row.retry_at
    schedule = editor_api.get("/api/v1/assets/daily/").json()["schedule"]
    assert "Moon/Base" in schedule["failure"]["error"]


def test_unpausing_again_by_the_same_key_is_not_done_again(
    editor_api: APIClient, daily: Asset
) -> None:
    address, key = "/api/v1/assets/daily/unpause/", {"Idempotency-Key": "once"}
    first = editor_api.post(address, headers=key)
    again = editor_api.post(address, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    assert Schedule.objects.get().handled_until == BEGAN


@pytest.mark.parametrize("verb", ["pause", "unpause"])
def test_others_may_not(
    api: APIClient, viewer_api: APIClient, stranger_api: APIClient, daily: Asset, verb: str
) -> None:
    address = f"/api/v1/assets/daily/{verb}/"
    assert api.post(address).status_code == viewer_api.post(address).status_code == 403
    assert stranger_api.post(address).status_code == 401
    assert not Asset.objects.get().paused
